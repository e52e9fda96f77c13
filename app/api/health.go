package api

import (
	"context"
	"io"
	"net/http"
	"time"

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

func plain(w http.ResponseWriter, status int, text string) error {
	w.Header().Set("Content-Type", mediaText+"; charset=utf-8")
	w.WriteHeader(status)
	_, err := io.WriteString(w, text)
	return err
}
