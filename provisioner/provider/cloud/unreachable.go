package cloud

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"loom/provisioner/provider"
)

// heard knows which hosts answered lately: one that refuses connections then is being
// restarted, and is waited for.
var heard = hosts{at: map[string]time.Time{}}

const (
	heardFor  = 10 * time.Minute
	heardMost = 1000
)

type hosts struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (h *hosts) from(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.at[host]; !known && len(h.at) >= heardMost {
		for name, at := range h.at {
			if time.Since(at) > heardFor {
				delete(h.at, name)
			}
		}
		if len(h.at) >= heardMost {
			clear(h.at)
		}
	}
	h.at[host] = time.Now()
}

func (h *hosts) lately(host string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, known := h.at[host]
	return known && time.Since(at) < heardFor
}

// unreachable tells, of the error of a call, what no second call would change: an
// *Error of kind Unreachable with the words of the trouble. Addresses that a name leads
// to are left out, for whoever wrote the name may not be who runs its resolver.
func unreachable(r *http.Request, err error) error {
	say := func(step, format string, args ...any) error {
		return &Error{Kind: Unreachable, Before: true, Err: err, Step: step, Message: fmt.Sprintf(format, args...)}
	}
	var own *Error
	var certificate *tls.CertificateVerificationError
	var name x509.HostnameError
	var plain tls.RecordHeaderError
	var dns *net.DNSError
	var op *net.OpError
	host, brief := r.URL.Host, r.Context().Value(briefKey{}) != nil
	passing := func(step, format string, args ...any) error {
		return &Error{Kind: Unavailable, Before: true, Err: err, Step: step, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case errors.As(err, &own):
		return err
	case errors.As(err, &name):
		return say(StepTLS, "the certificate of %s is for another name: %s", host, name.Error())
	case errors.As(err, &certificate):
		return say(StepTLS, "the certificate of %s is not trusted: %s; give the certificate of its authority in provider field %s", host, certificate.Err, provider.CAField)
	case errors.As(err, &plain) && string(plain.RecordHeader[:]) == "HTTP/", errors.Is(err, http.ErrSchemeMismatch):
		return say(StepTLS, "%s does not speak TLS but plain HTTP: %s; correct the address", host, err)
	case errors.As(err, &plain):
		return say(StepTLS, "%s does not speak TLS: %s; correct the address", host, err)
	case errors.As(err, &dns) && dns.IsNotFound:
		return say(StepResolve, "the name %s does not resolve: %s", dns.Name, dns.Err)
	case errors.As(err, &op) && op.Op == "dial" && errors.Is(err, syscall.ECONNREFUSED):
		if brief || !heard.lately(host) {
			return say(StepConnect, "%s refuses the connection: %s", host, op.Err)
		}
	case !brief: // only a probe tells the steps apart
	case dns != nil:
		return passing(StepResolve, "the name %s does not resolve: %s", dns.Name, dns.Err)
	case op != nil && op.Op == "dial":
		return passing(StepConnect, "%s cannot be connected to: %s", host, op.Err)
	case op != nil && op.Op == "remote error", strings.Contains(err.Error(), "TLS handshake"):
		return passing(StepTLS, "%s makes no encrypted connection: %s", host, err)
	}
	return err
}
