package cloudtest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote/sshtest"
)

// closed gives an address that nobody listens at.
func closed(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// Unreachable checks that what no second call would change is reported at once and in its own
// words, by CREATE, which made nothing, by CONFIRM and DELETE, which keep the machine,
// and by a probe.
func (l *Lab) Unreachable() {
	l.t.Helper()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = Silent()
	untrusted.StartTLS()
	l.t.Cleanup(untrusted.Close)
	machine := l.Spec(300)
	l.Must(machine, loom.ActionCreate, 0)
	for address, says := range map[string]string{
		"http://" + closed(l.t): "connect: connection refused", "https://nobody.invalid": "the name nobody.invalid does not resolve", untrusted.URL: "x509: certificate signed by unknown authority",
	} {
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
		if probe, err := l.Provider.(provider.Prober).Probe(l.Context(), call); err != nil || probe.OK || len(probe.Checks) != 1 || probe.Checks[0].Name != "connection" || !strings.Contains(strings.ToLower(probe.Checks[0].Message), strings.ToLower(says)) {
			l.t.Errorf("a probe of %s gave %+v, %v", address, probe, err)
		}
		if n := len(l.Clock.Waits()) - waits; n != 0 {
			l.t.Errorf("%s was waited for %d times", address, n)
		}
	}
	l.Must(machine, loom.ActionDelete, 0)
}

// Many checks what many nodes at once ask for: as few calls at once as max_calls says,
// one call each that makes a machine, and one sign-in for all; again when expire has
// ended the tokens. signIn is the operation, "" where there is none.
func (l *Lab) Many(signIn string, expire func()) {
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
	if expire != nil {
		expire()
		renewed = 1
	}
	each(loom.ActionDelete, renewed)
	if n := l.Cloud.Counts(); n.Live != 0 || n.Most > most {
		l.t.Errorf("in the end %+v", n)
	}
}

// ComparesKeys checks that a probe looks whether the key pair is that of the private key.
// set says what the cloud's public key is.
func (l *Lab) ComparesKeys(set func(public string)) {
	l.t.Helper()
	for public, says := range map[string]string{l.PublicKey: "true: fits", sshtest.NewKey(l.t, "ed25519", "").Authorized: "false: is not that of the private key", "": "true: does not tell"} {
		set(public)
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
	set(l.PublicKey)
}
