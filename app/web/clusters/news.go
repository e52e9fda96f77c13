package clusters

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

// newsMost bounds how many things are told of at once; the others are in the feed.
const newsMost = 3

// news tells, as toasts, of operations of the reader that ended, leases and tokens that end: what
// a signal of loom.TopicOwn names. What is not there any more is left out.
func (s *Server) news(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if !httpx.IsFragment(r) {
		return httpx.SeeOther(w, r, route.Home())
	}
	ids := strings.FieldsFunc(r.URL.Query().Get("of"), func(c rune) bool { return c == ',' })
	var toasts []ui.ToastModel
	for _, id := range ids[max(0, len(ids)-newsMost):] {
		toast, err := s.newsOf(r, actor, id)
		if errors.Is(err, loom.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if toast.Text != "" {
			toasts = append(toasts, toast)
		}
	}
	return s.Fragment(w, r, http.StatusOK, sharedview.Toasts(toasts))
}

// newsOf is the toast about an operation, "00000042/3", a lease, "00000042", or an API
// token, "token/7"; empty where there is nothing to say by now. NotFound.
func (s *Server) newsOf(r *http.Request, actor loom.Actor, id string) (ui.ToastModel, error) {
	if token, ok := strings.CutPrefix(id, loom.NewsOfToken); ok {
		return s.newsOfToken(r, actor, token)
	}
	if number, ok := strings.CutPrefix(id, loom.NewsOfIncident); ok {
		return s.newsOfIncident(r, actor, number)
	}
	name, rest, isOperation := strings.Cut(id, "/")
	cluster, ok := loom.ParseClusterID(name)
	number, err := loom.ParseNumber(rest)
	if !ok || isOperation && (err != nil || number <= 0) {
		return ui.ToastModel{}, loom.NewError(loom.NotFound, "There is no operation or cluster “%.40s”.", id)
	}
	v, err := s.briefCluster(r.Context(), actor, cluster)
	if err != nil {
		return ui.ToastModel{}, err
	}
	if !isOperation {
		if v.Expires.IsZero() || v.Status == loom.ClusterTerminated {
			return ui.ToastModel{}, nil
		}
		when := "ends " + ui.Relative(v.Expires, s.Now())
		if !v.Expires.After(s.Now()) {
			when = "has ended"
		}
		return ui.ToastModel{Tone: ui.ToneWarn, Text: "The lease of " + v.Name + " " + when + ".", Action: "Extend lease", ActionHref: route.ClusterLease(v.ID)}, nil
	}
	op, err := s.Clusters.Operation(r.Context(), actor, loom.OperationRef{Cluster: cluster, Number: number})
	if err != nil || !op.Status.Final() {
		return ui.ToastModel{}, err
	}
	m := ui.ToastModel{Tone: ui.ToneWarn, Text: s.operationSaid(&op, v.Name), Action: "View operation", ActionHref: route.Operation(op.Ref)}
	switch op.Status {
	case loom.OperationComplete:
		m.Tone = ui.ToneOK
	case loom.OperationFailed:
		m.Tone = ui.ToneBad
	}
	return m, nil
}

// newsOfIncident is the toast about an incident that asks the reader; empty where it is over or
// decided by now.
func (s *Server) newsOfIncident(r *http.Request, actor loom.Actor, id string) (ui.ToastModel, error) {
	number, err := loom.ParseNumber(id)
	if err != nil {
		return ui.ToastModel{}, loom.NewError(loom.NotFound, "There is no incident “%.20s”.", id)
	}
	i, err := s.Fleet.Incident(r.Context(), actor, int64(number))
	if err != nil || !i.Asks() {
		return ui.ToastModel{}, err
	}
	return ui.ToastModel{Tone: ui.ToneWarn, Text: incidentText(i) + " on " + ui.ShortHost(i.Hostname) + " of " + i.ClusterName + ".", Action: "View incident", ActionHref: route.ClusterTab(i.Cluster, "health")}, nil
}

// newsOfToken is the toast about a token of the reader that ends soon.
func (s *Server) newsOfToken(r *http.Request, actor loom.Actor, id string) (ui.ToastModel, error) {
	tokens, err := s.Accounts.Tokens(r.Context(), actor)
	if err != nil {
		return ui.ToastModel{}, err
	}
	for _, t := range tokens {
		if strconv.FormatInt(t.ID, 10) != id || t.Expires.IsZero() {
			continue
		}
		when := "expires " + ui.Relative(t.Expires, s.Now())
		if !t.Expires.After(s.Now()) {
			when = "has expired"
		}
		return ui.ToastModel{Tone: ui.ToneWarn, Text: "Your token “" + t.Name + "” " + when + ".", Action: "API tokens", ActionHref: route.AccountTokens()}, nil
	}
	return ui.ToastModel{}, loom.NewError(loom.NotFound, "There is no token “%.20s”.", id)
}
