package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// titleEnds is for how long the titles of pages tell how an operation ended.
const titleEnds = 10 * time.Minute

// titlePrefix is what a title begins with: how far an operation is, "(49/81)", or how
// it ended, "(failed)". It is empty long after the end.
func (s *Server) titlePrefix(op *loom.Operation) string {
	if op == nil {
		return ""
	}
	word := strings.ToLower(ui.OperationState(op.Status, op.Aborted).Word)
	if op.Status.Final() {
		if s.now().Sub(op.Ended) > titleEnds {
			return ""
		}
		return "(" + word + ")"
	}
	p := op.Progress()
	text := strconv.Itoa(p.Done) + "/" + strconv.Itoa(p.Total)
	if op.Status != loom.OperationRunning {
		text += ", " + word
	}
	return "(" + text + ")"
}

// operationSaid is what those hear of an operation who do not see the page: that it
// began, each quarter, that it paused, and how it ended. Its text changes no oftener.
func (s *Server) operationSaid(op *loom.Operation, name string) string {
	if op == nil || op.Status.Final() && s.now().Sub(op.Ended) > titleEnds {
		return ""
	}
	what := capital(op.Action.Verb()) + " of " + name
	because := ""
	if op.Message != "" {
		because = " " + op.Message
	}
	switch op.Status {
	case loom.OperationNotSubmitted:
		return what + " waits for a hook."
	case loom.OperationPaused:
		return what + " is paused."
	case loom.OperationFailing:
		if op.Aborted {
			return what + " is being aborted."
		}
		return what + " is failing." + because
	case loom.OperationRollingBack:
		return what + " failed and is rolled back." + because
	case loom.OperationComplete:
		return what + " is complete."
	case loom.OperationFailed:
		return what + " failed." + because
	case loom.OperationAborted:
		return what + " was aborted."
	case loom.OperationRolledBack:
		return what + " was rolled back." + because
	}
	if op.Tasks[loom.TaskFailed] > 0 {
		return what + " goes on with what does not wait for a task that failed." + because
	}
	p := op.Progress()
	return what + [...]string{" has begun.", ": a quarter is done.", ": half is done.", ": three quarters are done.", ": all but the end is done."}[4*p.Done/max(p.Total, 1)]
}

// clusterSaid is the part of all pages of a cluster that keeps their titles and what is
// said up to date.
func (s *Server) clusterSaid(v lifecycle.ClusterView) clusterview.SaidModel {
	m := clusterview.SaidModel{ID: v.ID, Said: s.operationSaid(v.Latest, v.Name), Topics: []string{route.TopicCluster(v.ID)}}
	if v.Latest != nil {
		m.Topics = append(m.Topics, route.TopicOperation(v.Latest.Ref))
	}
	return m
}

// clusterSaidPart answers with that part, and the title of the page that asks.
func (s *Server) clusterSaidPart(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := pathCluster(r)
	if err != nil {
		return err
	}
	v, err := s.briefCluster(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return s.fragment(w, r, http.StatusOK, layout.Titled(s.clusterFrame(r, v, ""), clusterview.SaidPart(s.clusterSaid(v))))
}
