package cloudtest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/provider"
	"loom/provisioner/remote/sshtest"
)

// closed returns an address that nobody listens at.
func closed(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// unreachable checks that what no second call would change is reported at once and in its own
// words, by CREATE, which made nothing, by CONFIRM and DELETE, which keep the machine,
// and by a probe.
func (l *Lab) unreachable() {
	l.t.Helper()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = Silent()
	untrusted.StartTLS()
	l.t.Cleanup(untrusted.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	l.t.Cleanup(plain.Close)
	machine := l.Spec(300)
	l.Must(machine, loom.ActionCreate, 0)
	for address, c := range map[string]struct{ step, says string }{
		"http://" + closed(l.t): {"connect", "connect: connection refused"}, "https://nobody.invalid": {"resolve", "the name nobody.invalid does not resolve"},
		untrusted.URL:              {"TLS", "x509: certificate signed by unknown authority"},
		"https://" + plain.URL[7:]: {"TLS", "does not speak TLS but plain HTTP"},
	} {
		says := c.says
		if l.Moved != nil {
			l.Moved(address)
		}
		waits := len(l.Clock.Waits())
		for _, action := range []loom.TaskAction{loom.ActionCreate, loom.ActionConfirm, loom.ActionDelete} {
			spec := l.at(301, address, loom.Anywhere())
			status := 202
			if action != loom.ActionCreate {
				spec.IdempotencyKey, spec.Results, status = machine.IdempotencyKey, machine.Results, 1
			}
			r, _ := l.Must(spec, action, status)
			if !strings.Contains(r.Message, says) || !r.KeepMachine || r.Retryable == nil || *r.Retryable {
				l.t.Errorf("%s with the API at %s gave %+v", action, address, r)
			}
		}
		call := l.Call()
		call.Provider = l.at(301, address, loom.Anywhere()).Provider
		ctx, cancel := context.WithTimeout(l.Context(), 5*time.Second)
		probe, err := l.Provider.(provider.Prober).Probe(ctx, call)
		cancel()
		failed, _ := probe.Failed()
		if err != nil || probe.OK || failed != probe.Checks[len(probe.Checks)-1] || failed.Name != c.step || !strings.Contains(strings.ToLower(failed.Message), strings.ToLower(says)) {
			l.t.Errorf("a probe of %s gave %+v, %v", address, probe.Checks, err)
		}
		if n := len(l.Clock.Waits()) - waits; n != 0 {
			l.t.Errorf("%s was waited for %d times", address, n)
		}
	}
	l.Must(machine, loom.ActionDelete, 0)
}

// many checks what many nodes at once ask for: as few calls at once as max_calls says,
// one call each that makes a machine, and one sign-in for all; again when the tokens have
// ended. signIn is the operation, "" where there is none.
func (l *Lab) many(signIn string) {
	l.t.Helper()
	const nodes, most = 12, 3
	l.Fields["max_calls"] = fmt.Sprint(most)
	specs := make([]*loom.TaskSpec, nodes)
	each := func(action loom.TaskAction, signIns int) {
		l.t.Helper()
		before := len(l.Cloud.Calls(signIn))
		var all sync.WaitGroup
		for _, spec := range specs {
			all.Go(func() {
				if r, sink, err := l.Do(l.Context(), spec, action); err != nil || r.Status != 0 {
					l.t.Errorf("%s gave %+v, %v\n%s", action, r, err, sink.Text())
				}
			})
		}
		all.Wait()
		if n := len(l.Cloud.Calls(signIn)) - before; signIn != "" && n != signIns {
			l.t.Errorf("%s: %d sign-ins, not %d", action, n, signIns)
		}
	}
	for n := range specs {
		specs[n] = l.Spec(400 + n)
	}
	each(loom.ActionCreate, 1)
	if n := l.Cloud.Counts(); len(l.Cloud.Calls(l.MakeOp)) != nodes || n.Live != nodes || n.Doubles != 0 || n.Most > most {
		l.t.Errorf("%d calls that make a machine, %+v", len(l.Cloud.Calls(l.MakeOp)), n)
	}
	renewed := 0
	if l.Expire != nil {
		l.Expire()
		renewed = 1
	}
	each(loom.ActionDelete, renewed)
	if n := l.Cloud.Counts(); n.Live != 0 || n.Most > most {
		l.t.Errorf("in the end %+v", n)
	}
}

// passes checks the steps of a probe of a provider that works, in their order, each told as it
// ends; and again over TLS by a name.
func (l *Lab) passes(steps []string) {
	l.t.Helper()
	l.passesAt(l.Call(), append([]string{"connect"}, steps...))
	front, authority := l.Secure()
	if l.Moved != nil {
		l.Moved(front)
	}
	call := l.Call()
	call.Provider.Fields[provider.EndpointField], call.Provider.Fields[provider.CAField] = front, authority
	l.passesAt(call, append([]string{"resolve", "connect", "TLS"}, steps...))
}

// Secure returns the address of a front of the fake cloud with TLS, by name, and who signed its
// certificate.
func (l *Lab) Secure() (address, authority string) {
	l.t.Helper()
	own, authority, err := fakecloud.Certificate("localhost")
	if err != nil {
		l.t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(l.Cloud)
	front.Config.ErrorLog, front.TLS = Silent(), &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}
	front.StartTLS()
	l.t.Cleanup(front.Close)
	return "https://localhost:" + mustParse(l.t, front.URL).Port(), authority
}

func (l *Lab) passesAt(call *loom.ProviderCall, steps []string) {
	l.t.Helper()
	var told, found []string
	call.Told = func(c loom.ProbeCheck) { told = append(told, c.Name) }
	probe, err := l.Provider.(provider.Prober).Probe(l.Context(), call)
	for _, c := range probe.Checks {
		found = append(found, c.Name)
		if !c.OK || c.Message == "" || c.Millis < 0 {
			l.t.Errorf("%+v", c)
		}
	}
	if err != nil || !probe.OK || !slices.Equal(found, steps) || !slices.Equal(told, steps) || len(steps) > loom.MaxProbeChecks {
		l.t.Errorf("a probe gave %v, reported %v, not %v: %v", found, told, steps, err)
	}
}

// comparesKeys checks that a probe looks whether the key pair is that of the private key.
func (l *Lab) comparesKeys() {
	l.t.Helper()
	for public, says := range map[string]string{l.PublicKey: "true: fits", sshtest.NewKey(l.t, "ed25519", "").Authorized: "false: is not that of the private key", "": "true: does not tell"} {
		l.SetPublicKey(public)
		probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call())
		if err != nil {
			l.t.Fatal(err)
		}
		ok, words, _ := strings.Cut(says, ": ")
		found := false
		for _, check := range probe.Checks {
			found = found || check.Name == "key pair" && fmt.Sprint(check.OK) == ok && strings.Contains(check.Message, words)
		}
		if !found {
			l.t.Errorf("%s: %+v", says, probe.Checks)
		}
	}
	l.SetPublicKey(l.PublicKey)
}
