package httpx

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"loom/app/loom"
)

type askedKey struct{}

// asked is what the log tells of a request.
type asked struct {
	id string
	// known says that it was claimed for somebody who is known.
	known bool
}

// RequestID returns the id under which the log knows the request.
func RequestID(r *http.Request) string {
	if a, ok := r.Context().Value(askedKey{}).(*asked); ok {
		return a.id
	}
	return ""
}

// Chain is the middleware around everything, outermost first: request id,
// deadlines, access log, recovery, the name that Loom is called by, security headers, limits
// of what is done at once, compression, cross-site protection. render answers what protection or a limit keeps out.
func Chain(log *slog.Logger, secure bool, protection *http.CrossOriginProtection, render ErrorRenderer, next http.Handler) http.Handler {
	deny := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			render(w, r, loom.NewError(loom.Forbidden,
				"This request came from another site and was refused. Behind a proxy that rewrites the Host header, set LOOM_PUBLIC_URL to the address that people open."))
		})
		err := Claim(r, AddressCaller(r))
		if err == nil {
			LimitOpenBody(w, r)
			err = InTurn(w, r, "", refuse)
		}
		if err != nil && r.Context().Err() == nil {
			e := loom.AsError(err)
			setRetryAfter(w, e)
			render(w, r, e)
		}
	})
	protected := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if CheckSite(protection, r) != nil {
			deny.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
	inner := namedProperly(securityHeaders(secure, limited(render, compressed(protected))))
	return requestID(deadlines(bodyPatience, answerPatience, accessLog(log, recovery(log, render, inner))))
}

// compressedTypes are compressed for clients that take it. Streams of events are
// not among them, since each event must leave at once.
var compressedTypes = []string{"text/html", "text/plain", "text/csv", "application/json", "application/problem+json", "image/svg+xml"}

// compressed makes answers of some size smaller. Their length is blurred, so that it
// tells nothing of a secret that stands beside what somebody else put into a page.
func compressed(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.ContentTypes(compressedTypes), gzhttp.EnableZstd(false), gzhttp.RandomJitter(32, 0, false))
	if err != nil {
		panic(err) // the options are constants
	}
	return wrap(next)
}

func requestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b [8]byte
		rand.Read(b[:])
		id := hex.EncodeToString(b[:])
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askedKey{}, &asked{id: id})))
	})
}

// recorder remembers the status for the access log.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader remembers the status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the real writer, for streams.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush sends what was written, if the real writer can.
func (r *recorder) Flush() {
	http.NewResponseController(r.ResponseWriter).Flush() //nolint:errcheck // it is asked of all writers
}

// accessLog tells of requests. What is not there and what somebody sends who is not known is
// logged for debugging only: anybody may send as much as he likes.
func accessLog(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w}
		next.ServeHTTP(rec, r)
		level := slog.LevelDebug
		absent := rec.status == http.StatusNotFound || rec.status == http.StatusMethodNotAllowed
		a, ok := r.Context().Value(askedKey{}).(*asked)
		if ok && a.known && (r.Method != http.MethodGet && r.Method != http.MethodHead && !absent || rec.status >= 500) {
			level = slog.LevelInfo
		}
		log.Log(r.Context(), level, "request", "request_id", RequestID(r), "method", loom.Recorded(r.Method), "path", loom.Recorded(r.URL.Path),
			"status", max(rec.status, 200), "duration_ms", time.Since(start).Milliseconds())
	})
}

func recovery(log *slog.Logger, render ErrorRenderer, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			log.Error("panic in a handler", "request_id", RequestID(r), "path", loom.Recorded(r.URL.Path), "error", p, "stack", string(debug.Stack()))
			render(w, r, loom.NewError(loom.Internal, "Something went wrong inside Loom."))
		}()
		next.ServeHTTP(w, r)
	})
}

// contentPolicy allows what Loom itself serves, and nothing inline.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'; report-to csp"

func securityHeaders(secure bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Content-Security-Policy-Report-Only", "require-trusted-types-for 'script'; report-to csp")
		h.Set("Reporting-Endpoints", `csp="/csp-reports"`)
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		h.Set("Cache-Control", "no-store")
		if secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}
