package api

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"loom/app/httpx"
	"loom/app/loom"
)

// readyTimeout bounds the check of readiness: whoever asks waits in line.
const readyTimeout = 3 * time.Second

// status is what the predecessor's scripts ask before anything else.
func (a *api) status(w http.ResponseWriter, _ *http.Request, _ loom.Actor) error {
	w.Header().Set("Connection", "close")
	return plain(w, http.StatusOK, "OK\n")
}

// healthz says that the process runs; readyz also that it can serve.
func (a *api) healthz(w http.ResponseWriter, _ *http.Request, _ loom.Actor) error {
	return plain(w, http.StatusOK, "ok "+a.Version+"\n")
}

func (a *api) readyz(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	ctx, stop := context.WithTimeout(r.Context(), readyTimeout)
	defer stop()
	if err := a.Ready(ctx); err != nil {
		a.Log.Warn("not ready", "error", err.Error())
		message := "the log says why"
		if e := loom.AsError(err); e.Kind != loom.Internal {
			message = e.Message
		}
		return plain(w, http.StatusServiceUnavailable, "not ready: "+message+"\n")
	}
	return plain(w, http.StatusOK, "ready\n")
}

// proxyHeaders tell that a request came through a proxy: then the peer's address
// says nothing of who asks.
var proxyHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}

// metrics is for programs of this host or of named networks, which come without a
// token, and for superadmins: metrics tell the names of tenants.
func (a *api) metrics(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	if a.Metrics == nil {
		return loom.NewError(loom.NotFound, "There are no metrics here.")
	}
	proxied := slices.ContainsFunc(proxyHeaders, func(name string) bool { return r.Header.Get(name) != "" })
	if proxied || !httpx.Within(r, a.MetricsNetworks) || !a.Hosts.Names(r) {
		actor, err := a.identify(r)
		if err != nil {
			return err
		}
		if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
			return err
		}
	}
	a.Metrics.ServeHTTP(w, r)
	return nil
}

func plain(w http.ResponseWriter, status int, text string) error {
	w.Header().Set("Content-Type", mediaText+"; charset=utf-8")
	w.WriteHeader(status)
	_, err := io.WriteString(w, text)
	return err
}
