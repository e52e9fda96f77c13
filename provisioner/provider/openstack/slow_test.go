package openstack_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/stack"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/openstack"
)

// Many nodes at once sign in once, ask a slow Nova as few times at once as the field
// says, and repeat nothing.
func TestManyNodesAtASlowNova(t *testing.T) {
	t.Parallel()
	const nodes = 30
	l, dialect := lab(t, false)
	l.Cloud.Slow(stack.Create, 2, 2*time.Millisecond)
	l.Fields["max_calls"] = "4"
	each := func(do func(n int)) {
		var all sync.WaitGroup
		for n := range nodes {
			all.Go(func() { do(n) })
		}
		all.Wait()
	}
	specs := make([]*loom.TaskSpec, nodes)
	each(func(n int) {
		specs[n] = l.Spec(n)
		if r, sink, err := l.Do(l.Context(), specs[n], loom.ActionCreate); err != nil || r.Status != 0 {
			t.Errorf("%+v, %v\n%s", r, err, sink.Text())
		}
	})
	counts := l.Cloud.Counts()
	if made, signed := len(l.Cloud.Calls(stack.Create)), len(l.Cloud.Calls(stack.SignIn)); made != nodes || signed != 1 || counts.Live != nodes || counts.Doubles != 0 || counts.Most > 4 {
		t.Errorf("%d calls for machines, %d sign-ins, %+v", made, signed, counts)
	}
	for _, call := range l.Cloud.Calls("") {
		if call.Abandoned {
			t.Errorf("%s was not waited for", call.Op)
		}
	}
	// When the token runs out for all of them it is renewed once.
	dialect.Expire()
	each(func(n int) {
		if r, sink, err := l.Do(l.Context(), specs[n], loom.ActionDelete); err != nil || r.Status != 0 {
			t.Errorf("%+v, %v\n%s", r, err, sink.Text())
		}
	})
	if signed := len(l.Cloud.Calls(stack.SignIn)); signed != 2 || l.Cloud.Counts().Live != 0 {
		t.Errorf("%d sign-ins, %+v", signed, l.Cloud.Counts())
	}
}

// A DELETE that the cloud forbids keeps the machine in mind, also where only its key
// tells that there is one.
func TestForbiddenDelete(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	for n, c := range []struct {
		op    string
		known bool
	}{{stack.Delete, true}, {stack.Delete, false}, {stack.List, true}, {stack.List, false}} {
		spec := l.Spec(n)
		l.Must(spec, loom.ActionCreate, 0)
		if !c.known {
			delete(spec.Results, "providerid")
		}
		l.Cloud.Inject(fakecloud.Fault{Op: c.op, Status: 403, Message: "Policy doesn't allow os_compute_api:servers:delete"})
		r, _ := l.Must(spec, loom.ActionDelete, 1)
		if !strings.HasPrefix(r.Message, "Policy doesn't allow os_compute_api:servers:delete") || c.known && spec.Results["providerid"] == nil {
			t.Errorf("%+v gave %+v", c, r)
		}
		l.Must(spec, loom.ActionDelete, 0)
	}
	// Nor is it forgotten where the credentials are withdrawn in the middle.
	spec := l.Spec(9)
	l.Must(spec, loom.ActionCreate, 0)
	delete(spec.Results, "providerid")
	l.Cloud.Inject(fakecloud.Fault{Op: stack.Delete, Status: 401, Times: 2})
	l.Must(spec, loom.ActionDelete, 1)
	l.Must(spec, loom.ActionDelete, 0)
}

// A CONFIRM that gets no answer of the API says nothing of the machine, and one that
// finds it broken does.
func TestConfirmKeepsMachines(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	for _, c := range []struct {
		fault fakecloud.Fault
		b     fakecloud.Behaviour
		keep  bool
	}{
		{fakecloud.Fault{Op: stack.Get, Status: 503, Times: -1}, fakecloud.Behaviour{}, true}, {fakecloud.Fault{Op: stack.Get, Lost: true, Times: -1}, fakecloud.Behaviour{}, true},
		{fakecloud.Fault{Op: stack.Get, Status: 429, RetryAfter: "900"}, fakecloud.Behaviour{}, true}, {fakecloud.Fault{Op: stack.Get, Status: 403}, fakecloud.Behaviour{}, true},
		{fakecloud.Fault{Op: stack.SetFloat}, fakecloud.Behaviour{Break: "No valid host"}, false}, {fakecloud.Fault{Op: stack.SetFloat}, fakecloud.Behaviour{Unseen: 1 << 30}, false},
	} {
		l.Cloud.Behave(c.b)
		spec := l.Spec(1)
		l.Must(spec, loom.ActionCreate, 0)
		l.Cloud.Inject(c.fault)
		if r, _ := l.Must(spec, loom.ActionConfirm, 1); r.KeepMachine != c.keep {
			t.Errorf("%+v, %+v gave %+v", c.fault, c.b, r)
		}
		l.Cloud.Heal()
		l.Must(spec, loom.ActionDelete, 0)
	}
}

// The certificate of a cloud of one's own is trusted where its authority is named.
func TestAuthority(t *testing.T) {
	t.Parallel()
	own, authority, err := fakecloud.Certificate("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	l, _ := lab(t, false)
	dialect := stack.New()
	c := fakecloud.NewSecure(dialect, nil, own)
	t.Cleanup(c.Close)
	p := openstack.New(cloud.Options{Pace: cloud.Pace{Sleep: l.Clock.Sleep}})
	l.Provider = p
	l.Fields["openstack_auth_url"] = c.URL() + "/v3"
	r, _ := l.Must(l.Spec(1), loom.ActionCreate, 202)
	probe, err := provider.Prober(p).Probe(l.Context(), l.Call())
	failed, _ := probe.Failed()
	for _, text := range []string{r.Message, failed.Message} {
		if !strings.Contains(text, "x509: certificate signed by unknown authority") || !strings.Contains(text, "api_ca") {
			t.Error(text)
		}
	}
	if err != nil || probe.OK || len(l.Clock.Waits()) != 0 || len(c.Calls("")) != 0 {
		t.Errorf("%+v, %v after %v", probe, err, l.Clock.Waits())
	}
	l.Fields["api_ca"] = authority
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	l.Must(spec, loom.ActionDelete, 0)
}
