package clusters

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

const (
	// journalPast is how many lines of the past a page begins with, of each unit and file.
	journalPast = 200
	// journalWait is how long a page waits for them.
	journalWait = 5 * time.Second
	// journalEvery is after how many seconds a page looks for newer lines, by which it also
	// says that somebody reads.
	journalEvery = 1
)

// journalLink leads to the journal of a service on a node, "" while it has no machine.
func journalLink(v clusters.ClusterView, n loom.Node, service string) string {
	if n.State != loom.NodeReady {
		return ""
	}
	return route.ServiceJournal(v.ID, n.ID, service)
}

// serviceJournal shows what a service writes on a node, and follows it.
func (s *Server) serviceJournal(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if id := r.URL.Query().Get("rows"); id != "" {
		return s.journalRows(w, r, actor, loom.JournalID(id))
	}
	v, n, err := s.pathNode(r, actor)
	if err != nil {
		return err
	}
	service, short := route.Segment(r.PathValue("service")), ui.NodeNumber(n.Hostname)
	m := clusterview.JournalModel{Service: service, Hostname: short, Node: route.Node(v.ID, n.ID), Self: route.ServiceJournal(v.ID, n.ID, service)}
	id, err := s.Fleet.OpenJournal(r.Context(), actor, loom.Journal{Cluster: v.ID, Node: n.ID, Service: service, Lines: journalPast, Follow: true})
	switch e := loom.AsError(err); {
	case err == nil:
		if m.Log, err = s.journalModel(r.Context(), actor, id, m.Self); err != nil {
			return err
		}
		m.Log.Label = fmt.Sprintf("Journal of %s on %s", service, short)
	case e.Kind == loom.Conflict, e.Kind == loom.Throttled, e.Kind == loom.Unavailable:
		m.Trouble = e.Message
	default:
		return err
	}
	if page.Wants(r, clusterview.TaskSideID) {
		return s.Fragment(w, r, http.StatusOK, clusterview.JournalSide(m))
	}
	frame := clusterPage("Journal of "+service, "Nodes", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: "Nodes", Href: route.ClusterNodes(v.ID)},
		ui.Crumb{Label: short, Href: m.Node}, ui.Crumb{Label: "Journal of " + service})
	page.Reloading(r, &frame, m.Log.More != "")
	return s.Render(w, r, actor, http.StatusOK, frame, clusterview.JournalPage(m))
}

// journalModel is the log of a journal that was just opened, once its first lines are there.
func (s *Server) journalModel(ctx context.Context, actor loom.Actor, id loom.JournalID, self string) (ui.LogModel, error) {
	m := ui.LogModel{ID: "log", Plain: true}
	wake, stop := s.Hub.FollowJournal(id)
	defer stop()
	limit := time.NewTimer(journalWait)
	defer limit.Stop()
	for waited := false; ; {
		j, lines, err := s.Fleet.Journal(ctx, actor, id, len(m.Lines), logPage)
		if err != nil {
			return m, err
		}
		m.Lines = append(m.Lines, journalLines(lines)...)
		if len(lines) == logPage {
			continue // of one that was open already
		}
		if j.Ended {
			m.Note = endText(j)
		}
		if j.Ended || j.Began || waited {
			if !j.Ended {
				m.More, m.Every = route.Query(self, "rows", string(id)), journalEvery
			}
			m.Lines = m.Lines[max(0, len(m.Lines)-logPage):]
			return m, nil
		}
		select {
		case <-ctx.Done():
			return m, ctx.Err()
		case <-limit.C:
			waited = true
		case <-wake:
		}
	}
}

func journalLines(lines []loom.JournalLine) []ui.LogLine {
	out := make([]ui.LogLine, len(lines))
	for i, l := range lines {
		out[i] = ui.LogLine{Seq: l.Seq, Time: l.Time, Stream: "stdout", Text: l.Text}
		if l.Skipped > 0 {
			out[i].Stream, out[i].Text = "loom", ui.Count(l.Skipped, "line", "lines")+fmt.Sprintf(" skipped: more than %d a second", loom.JournalRate)
		}
	}
	return out
}

// endText says why a journal ended.
func endText(j loom.Journal) string {
	if j.Message == "" {
		return "The journal has ended."
	}
	return j.Message
}

// journalRows answers a script with the rows after one, and at the end with why.
func (s *Server) journalRows(w http.ResponseWriter, r *http.Request, actor loom.Actor, id loom.JournalID) error {
	in := logInput(r)
	j, lines, err := s.Fleet.Journal(r.Context(), actor, id, in.After, logPage)
	if err != nil {
		return err
	}
	rows := journalLines(lines)
	if j.Ended && len(lines) < logPage {
		last := in.After
		if len(lines) > 0 {
			last = lines[len(lines)-1].Seq
		}
		rows = append(rows, ui.LogLine{Seq: last + 1, Time: s.Now(), Stream: "loom", Text: endText(j)})
		w.Header().Set("Loom-Ended", "1")
	}
	if len(rows) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return s.Fragment(w, r, http.StatusOK, ui.LogLines(rows))
}
