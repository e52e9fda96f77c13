package cloud

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"

	"loom/app/loom"
)

// way tells a probe of the steps to the cloud's API as the connection of its first call
// takes them: that is the connection that tasks make, by the same rules. Connections
// to other services of the cloud are none of its steps.
type way struct {
	mu    sync.Mutex
	probe *loom.Probe
	// open says that a call is being made: nobody else adds checks then.
	open bool
	// host is whose way it is, told what learns of it already.
	host string
	told map[string]bool
}

type wayKey struct{}

// begin lets a call tell its steps; end is called when it has returned.
func (w *way) begin(ctx context.Context) (with context.Context, end func()) {
	if w == nil {
		return ctx, func() {}
	}
	w.set(true)
	return context.WithValue(ctx, wayKey{}, w), func() { w.set(false) }
}

func (w *way) set(open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = open
}

// tell adds a step, once. The connection may be made after its call was given up; then
// nobody wants to know.
func (w *way) tell(host, step, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.host == "" {
		w.host = host
	}
	if w.told == nil {
		w.told = map[string]bool{}
	}
	if !w.open || w.host != host || w.told[step] {
		return
	}
	w.told[step] = true
	w.probe.Check(step, true, message)
}

// WayTo says whose way is told, for clouds that are signed in to elsewhere: without it, that of the
// first host that is called.
func (s *Session) WayTo(address string) {
	if u, err := url.Parse(address); err == nil && s.way != nil {
		s.way.host = u.Host
	}
}

// traced is a request that tells the steps of its way. Neither the addresses that a name
// leads to are told, nor what kind of address that is: whoever wrote the name may not be who
// runs its resolver.
func traced(r *http.Request, proxied bool) *http.Request {
	w, _ := r.Context().Value(wayKey{}).(*way)
	if w == nil {
		return r
	}
	host, message := r.URL.Host, r.URL.Host+" takes the connection."
	if proxied {
		message = "The proxy of this host is asked for " + host + "."
	}
	trace := &httptrace.ClientTrace{
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				w.tell(host, StepConnect, message)
			}
		},
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			if err == nil {
				trusted := ", and the certificate is trusted."
				if len(state.VerifiedChains) == 0 {
					trusted = ". The certificate is not checked."
				}
				w.tell(host, StepTLS, tls.VersionName(state.Version)+trusted)
			}
		},
	}
	if _, err := netip.ParseAddr(r.URL.Hostname()); err != nil && !proxied {
		trace.DNSDone = func(info httptrace.DNSDoneInfo) {
			if info.Err == nil && len(info.Addrs) > 0 {
				w.tell(host, StepResolve, "The name "+r.URL.Hostname()+" resolves.")
			}
		}
	}
	return r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
}
