// Package httpx is the HTTP that both surfaces share: middleware, the wrapper
// that turns errors into answers, problem+json, sessions, event streams.
//
// It knows no pages and no routes. A handler decodes, calls one use case and
// renders; whatever it returns as an error is answered here, once, by the
// surface's own renderer. The actor is handed to handlers as an argument, never
// through the context.
package httpx

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"syscall"

	"loom/app/loom"
)

// Handler answers a request or returns why it cannot.
type Handler func(w http.ResponseWriter, r *http.Request) error

// ActorHandler is a Handler for a known actor.
type ActorHandler func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error

// ErrorRenderer answers a request that failed. The status comes from the error's
// kind; unknown errors arrive as Internal with the cause inside.
type ErrorRenderer func(w http.ResponseWriter, r *http.Request, err *loom.Error)

// Wrap makes an http.Handler. Errors of kind Internal and Unavailable are logged
// here, and nowhere else.
func Wrap(log *slog.Logger, render ErrorRenderer, h Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		if slow := tooSlow(r); slow != nil && !errors.Is(err, errEnded) {
			err = slow // whatever the handler made of it
		}
		e := loom.AsError(err)
		if gone := r.Context().Err(); gone != nil && (errors.Is(err, gone) || e.Kind == loom.Unavailable || unsent(err)) {
			// The client is gone, and its request was cancelled.
			log.Debug("the client is gone", "request_id", RequestID(r), "path", loom.Recorded(r.URL.Path), "error", err.Error())
			return
		}
		if e.Kind == loom.Internal || e.Kind == loom.Unavailable {
			log.Error("request failed", "request_id", RequestID(r), "path", loom.Recorded(r.URL.Path), "error", err.Error())
		}
		setRetryAfter(w, e)
		render(w, r, e)
	})
}

// unsent reports whether an error may be that of an answer that nobody takes.
func unsent(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrDeadlineExceeded)
}

// Headers that sum up what an import would do: how many entries are invalid, and the strongest
// effect on clusters.
const (
	HeaderInvalid = "Loom-Invalid"
	HeaderEffect  = "Loom-Effect"
)

// IsFragment reports whether htmx asks for a part of a page. Only Render and
// SeeOther, and the error renderer of the pages, need to know.
func IsFragment(r *http.Request) bool {
	return r.Header.Get("HX-Request") == "true" && r.Header.Get("HX-History-Restore-Request") != "true"
}

// SeeOther sends the browser to a URL of this site after a successful POST.
func SeeOther(w http.ResponseWriter, r *http.Request, url string) error {
	if IsFragment(r) {
		w.Header().Set("HX-Redirect", url)
		w.WriteHeader(http.StatusOK)
		return nil
	}
	http.Redirect(w, r, url, http.StatusSeeOther)
	return nil
}
