package joyent_test

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/joyent"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
	"loom/provisioner/standin"
	"loom/provisioner/standin/cloudtest"
	"loom/provisioner/standin/triton"
)

// lab has an account whose key, of a kind that may sign, also opens the machine.
func lab(t *testing.T, ssh bool, kind, passphrase string) (*cloudtest.Lab, *triton.Triton) {
	t.Helper()
	key, wrong := sshtest.NewKey(t, kind, passphrase), sshtest.NewKey(t, "ecdsa", "")
	dialect := triton.New(public(t, key))
	l := cloudtest.New(t, dialect, ssh, func(o cloud.Options) provider.Provider { return joyent.NewLocal(o) })
	files := filepath.Join(provider.EnvOf(l.Context()).Files, "ssh_keys")
	for name, k := range map[string]sshtest.Key{cloudtest.KeyResource: key, "wrong": wrong, "new": sshtest.NewKey(t, "ed25519", "")} {
		if err := os.WriteFile(filepath.Join(files, name), []byte(k.PEM), 0o600); err != nil {
			t.Fatal(err)
		}
		l.Secrets = append(l.Secrets, strings.Split(k.PEM, "\n")[1])
	}
	if ssh {
		file, err := os.OpenFile(filepath.Join(l.SSH.Dir, "authorized_keys"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(file, key.Authorized); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l.Flavor, l.Image, l.MakeOp = triton.Package, triton.Image, triton.Create
	l.Secrets = append(l.Secrets, triton.Password, "pass phrase")
	l.Throttle = standin.Fault{Status: 429, Code: "RequestThrottled"}
	l.Fields = map[string]any{"api_user": triton.Login, "api_password": "", "ssh_keypair": triton.KeyName, "ssh_key_resource": cloudtest.KeyResource,
		"joyent_version": "~7.0", "joyent_api_url": l.Cloud.URL() + "/"}
	if passphrase != "" {
		l.Fields["ssh_key_passphrase"] = passphrase
	}
	l.Refuse = func(fields map[string]any) { fields["ssh_key_resource"] = "wrong" }
	return l, dialect
}

func public(t *testing.T, key sshtest.Key) crypto.PublicKey {
	t.Helper()
	parsed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key.Authorized))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.(ssh.CryptoPublicKey).CryptoPublicKey()
}

func TestWalls(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true, "ecdsa", "")
	l.Walls()
}

func TestConformance(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true, "ecdsa", "")
	l.Conform()
}

func TestLife(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, passphrase string }{{"rsa", ""}, {"ecdsa", "pass phrase"}} {
		l, dialect := lab(t, true, c.kind, c.passphrase)
		dialect.Also("127.0.0.9", "169.254.3.4", "fe80::1")
		spec := l.Spec(1)
		made, sink := l.Must(spec, loom.ActionCreate, 0)
		if facts := sink.Facts(); len(facts) != 1 || facts[0]["providerid"] != made.Result["providerid"] {
			t.Errorf("reported %v, gave %v", facts, made.Result)
		}
		if auth := made.Result["ssh-auth"].(map[string]any); auth["identityfile"] != "ssh_keys/lab-key" || auth["user"] != "tester" {
			t.Errorf("ssh-auth is %v", auth)
		}
		list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call())
		if err != nil || len(list) != 1 || list[0].Key != spec.IdempotencyKey || list[0].Node != spec.Node || list[0].Tenant != "Acme" || list[0].Cluster != "00000007" {
			t.Errorf("list gave %+v, %v", list, err)
		}
		gone, _ := l.Must(spec, loom.ActionDelete, 0)
		if value, there := gone.Result["ssh_host_keys"]; !there || value != nil {
			t.Errorf("delete does not clear the facts: %v", gone.Result)
		}
		if list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call()); err != nil || len(list) != 0 {
			t.Errorf("list gave %+v, %v", list, err)
		}
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true, "ecdsa", "")
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	confirmed, sink := l.Must(spec, loom.ActionConfirm, 0)
	if confirmed.Addresses[loom.AccessV4] != l.SSH.Address || strings.Contains(sink.Text(), "first boot") {
		t.Errorf("confirm gave %+v\n%s", confirmed, sink.Text())
	}
	l.Must(spec, loom.ActionConfirm, 0) // again
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ all, access, bind string }{
		{"", "", ""}, {"127.0.0.1 169.254.0.9 fe80::1 ::1 nonsense", "", ""}, {"10.1.2.3", "10.1.2.3", "10.1.2.3"}, {"203.0.113.9", "203.0.113.9", "203.0.113.9"},
		{"10.1.2.3 203.0.113.9 203.0.113.10", "203.0.113.9", "10.1.2.3"}, {"203.0.113.9 192.168.0.4 10.1.2.3", "203.0.113.9", "192.168.0.4"},
		{"100.64.0.7 203.0.113.9", "203.0.113.9", "100.64.0.7"}, {"127.0.0.1 172.16.0.5 172.16.0.6", "172.16.0.5", "172.16.0.5"},
	} {
		if access, bind := joyent.Addresses(strings.Fields(c.all)); access != c.access || bind != c.bind {
			t.Errorf("%q gave %q and %q", c.all, access, bind)
		}
	}
}

// The script waits while a process of the first boot runs, and gives up in the end.
func TestFirstBoot(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true, "ecdsa", "")
	conn, err := remote.Dial(t.Context(), remote.Target{Reach: loom.Anywhere(), Address: l.SSH.Address, Port: l.SSH.Port, Keys: []loom.Secret{loom.NewSecret(l.SSH.Key.PEM)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	exec := func(c remote.Command) (string, remote.Outcome) {
		said := ""
		c.Root, c.Line = true, func(_, text string) { said += text + "\n" }
		out, err := conn.Exec(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return said, out
	}
	wait := remote.Command{Text: joyent.FirstBoot, Env: map[string]string{"LOOM_FIRST_BOOT": "4"}}
	if said, out := exec(wait); !out.OK() || said != "" {
		t.Errorf("a machine that is done gave %d, %q", out.Code, said)
	}
	// Runs until the file is gone. What the command line says must not count as one.
	begin := remote.Command{Text: `d=/root/smartdc; mkdir -p $d; touch $d/runs
printf '#!/bin/sh\nwhile [ -e /root/smartdc/runs ]; do sleep 0.1; done\n' >$d/first""boot; chmod 0755 $d/first""boot
setsid $d/first""boot >/dev/null 2>&1 </dev/null &
until ps -eo args | grep -q 'smartdc/firstboo[t]$'; do :; done`}
	if _, out := exec(begin); !out.OK() {
		t.Fatalf("%+v", out)
	}
	if said, out := exec(wait); out.Code != 1 || !strings.Contains(said, "did not end within 4 s") {
		t.Errorf("a first boot without end gave %d, %q", out.Code, said)
	}
	end := wait
	end.Text = "(sleep 0.5; rm /root/smartdc/runs) >/dev/null 2>&1 </dev/null &\n" + end.Text
	if said, out := exec(end); !out.OK() || !strings.Contains(said, "waiting for the first boot") {
		t.Errorf("a first boot that ends gave %d, %q", out.Code, said)
	}
}

func TestLostAnswersMakeOneMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault  standin.Fault
		lagged int
	}{
		{standin.Fault{Lost: true}, 0}, {standin.Fault{Lost: true}, 2}, {standin.Fault{Garbled: true}, 0}, {standin.Fault{Status: 500, Times: 2}, 0}, {standin.Fault{Status: 503}, 0},
	} {
		l, _ := lab(t, false, "ecdsa", "")
		c.fault.Op = triton.Create
		l.Cloud.Inject(c.fault)
		l.Cloud.Behave(standin.Behaviour{Unlisted: c.lagged / 2})
		spec := l.Spec(1)
		result, _ := l.Must(spec, loom.ActionCreate, 0)
		if n := l.Cloud.Counts(); n.Live != 1 || n.Doubles != 0 || len(l.Cloud.Leaked(result.Result["providerid"].(string))) != 0 {
			t.Errorf("%+v: %+v", c, n)
		}
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	for _, forgets := range []bool{false, true} {
		l, dialect := lab(t, false, "ecdsa", "")
		if forgets {
			dialect.Forget()
		}
		l.Cloud.Behave(standin.Behaviour{Leaving: 3})
		spec := l.Spec(1)
		l.Must(spec, loom.ActionCreate, 0)
		id := spec.Results["providerid"]
		dialect.Placing(4)
		if _, sink := l.Must(spec, loom.ActionDelete, 0); !strings.Contains(sink.Text(), "being placed") {
			t.Errorf("nothing is said of the wait:\n%s", sink.Text())
		}
		if m := l.Cloud.Machines()[0]; m.State != standin.Gone {
			t.Errorf("delete did not wait: the machine is %s", m.State)
		}
		spec.Results["providerid"] = id
		l.Must(spec, loom.ActionDelete, 0) // twice
		for _, other := range []string{"", "7f1f2a34-6c1e-4b8b-9a57-000000000099", "../keys"} {
			never := l.Spec(9)
			never.Results["providerid"] = other
			l.Must(never, loom.ActionDelete, 0)
		}
		forgotten := l.Spec(2)
		l.Must(forgotten, loom.ActionCreate, 0)
		forgotten.Results = map[string]any{}
		l.Must(forgotten, loom.ActionDelete, 0)
		if n := l.Cloud.Counts(); n.Live != 0 {
			t.Errorf("delete by key left %+v", n)
		}
		third := l.Spec(3)
		l.Must(third, loom.ActionCreate, 0)
		l.Refuse(third.Provider.Fields)
		if r, _ := l.Must(third, loom.ActionDelete, 1); !strings.Contains(r.Message, "credentials") || third.Results["providerid"] == nil {
			t.Errorf("wrong credentials gave %+v", r)
		}
		never := l.Spec(4)
		l.Refuse(never.Provider.Fields)
		l.Must(never, loom.ActionDelete, 0)
	}
}

func TestTwoNodesAtOnce(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	specs := []*loom.TaskSpec{l.Spec(1), l.Spec(2)}
	var wg sync.WaitGroup
	for _, spec := range specs {
		wg.Go(func() {
			if r, _, err := l.Do(l.Context(), spec, loom.ActionCreate); err != nil || r.Status != 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	l.Must(l.Spec(1), loom.ActionCreate, 0) // adopted
	if n := l.Cloud.Counts(); n.Live != 2 || n.Created != 2 || n.Doubles != 0 {
		t.Errorf("%+v", n)
	}
}

func TestMachinesThatFail(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	for i, c := range []struct {
		b       standin.Behaviour
		message string
	}{
		{standin.Behaviour{Break: "no server has room"}, "failed"},
		{standin.Behaviour{Pending: 1 << 30}, "did not run within 600 s"},
		{standin.Behaviour{NoAddress: true}, "no address"},
		{standin.Behaviour{Unseen: 1 << 30}, "quota"},
	} {
		l.Cloud.Behave(c.b)
		spec := l.Spec(10 + i)
		l.Must(spec, loom.ActionCreate, 0)
		if r, sink := l.Must(spec, loom.ActionConfirm, 1); !strings.Contains(r.Message, c.message) || r.Retryable != nil {
			t.Errorf("%+v gave %+v\n%s", c.b, r, sink.Text())
		}
		l.Cloud.Heal()
		l.Must(spec, loom.ActionDelete, 0)
	}
	if r, _ := l.Must(l.Spec(5), loom.ActionConfirm, 1); !strings.Contains(r.Message, "no machine") {
		t.Errorf("a node without a machine gave %+v", r)
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	l.Cloud.Behave(standin.Behaviour{Pending: 1 << 30})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	abort := errors.New("somebody aborted")
	ctx, cancel := context.WithCancelCause(l.Context())
	defer cancel(nil)
	sink := &cloudtest.Sink{On: func(string) { cancel(abort) }}
	if _, err := l.Provider.Confirm(ctx, spec, sink); !errors.Is(err, abort) {
		t.Errorf("a cancelled confirm gave %v", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	l.Refusals([]cloudtest.Refusal{
		{Fault: standin.Fault{Status: 401}, Status: 201, Never: true, Message: "credentials"},
		{Fault: standin.Fault{Status: 403}, Status: 202, Never: true, Message: "NotAuthorized"},
		{Fault: standin.Fault{Status: 403, Code: "QuotaExceeded"}, Status: 202, Message: "QuotaExceeded"},
		{Fault: standin.Fault{Status: 409}, Status: 202},
		{Fault: standin.Fault{Status: 409, Code: "InsufficientServers"}, Status: 202},
		{Fault: standin.Fault{Status: 404}, Status: 202},
		{Fault: standin.Fault{Status: 400}, Status: 202, Never: true},
		{Fault: standin.Fault{Status: 413, Code: "RequestTooLarge"}, Status: 202, Never: true},
		{Fault: standin.Fault{Status: 429, RetryAfter: "20"}, Status: 1},
		{Fault: standin.Fault{Status: 500}, Status: 1, Message: "InternalError"},
		{Fault: standin.Fault{Status: 503}, Status: 1},
	})
}

func TestSettings(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false, "ecdsa", "")
	for _, c := range []struct {
		field, value string
		status       int
		message      string
	}{
		{"ssh_key_resource", "wrong", 201, "InvalidCredentials"},
		{"ssh_key_resource", "missing", 201, "missing"},
		{"ssh_key_resource", "new", 201, "RSA or ECDSA"},
		{"ssh_key_resource", "", 201, "api_password"},
		{"ssh_keypair", "other", 201, "InvalidCredentials"},
		{"ssh_keypair", `a",algorithm="none`, 201, "ssh_keypair"},
		{"api_user", "", 201, "api_user"},
		{"api_user", "a/b", 201, "api_user"},
		{"joyent_api_url", "ftp://cloud.example", 202, "joyent_api_url"},
		{"endpoint_url", "https://user:word@cloud.example", 202, "endpoint_url"},
	} {
		spec := l.Spec(1)
		spec.Provider.Fields[c.field] = c.value
		if r, _ := l.Must(spec, loom.ActionCreate, c.status); !strings.Contains(r.Message, c.message) || r.Retryable == nil || *r.Retryable {
			t.Errorf("%s %q gave %+v", c.field, c.value, r)
		}
	}
	for _, change := range []func(*loom.TaskSpec){
		func(s *loom.TaskSpec) { s.Image = "unknown" }, func(s *loom.TaskSpec) { s.Image = "" }, func(s *loom.TaskSpec) { s.Flavor = "" },
		func(s *loom.TaskSpec) { s.Flavor = "unknown" },
	} {
		spec := l.Spec(1)
		change(spec)
		l.Must(spec, loom.ActionCreate, 202)
	}
	secure := joyent.New(cloud.Options{})
	if r, err := secure.Create(l.Context(), l.Spec(1), &cloudtest.Sink{}); err != nil || r.Status != 202 || !strings.Contains(r.Message, "LOOM_ALLOW_INSECURE_ENDPOINTS") {
		t.Errorf("an address without HTTPS gave %+v, %v", r, err)
	}
	// By password, where the installation takes them.
	byPassword := l.Spec(1)
	byPassword.Provider.Fields["ssh_keypair"], byPassword.Provider.Fields["api_password"] = "", triton.Password
	l.Must(byPassword, loom.ActionCreate, 201)
	if n := l.Cloud.Counts(); n.Created != 0 {
		t.Errorf("something was made: %+v", n)
	}
	dialect.Passwords = true
	l.Must(byPassword, loom.ActionCreate, 0)
	taken := l.Spec(1)
	taken.IdempotencyKey = "5f0e8c1a-2b7d-5a3c-9e4f-000000000777"
	if r, _ := l.Must(taken, loom.ActionCreate, 202); !strings.Contains(r.Message, "taken") {
		t.Errorf("a name that is taken gave %+v", r)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	l.Unreachable()
	l.Passes("sign in", "key pair", "sizes", "images")
}

func TestManyNodes(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	l.Many("", nil)
}

// A signature is worth nothing but for the call that was signed: not at another address,
// and not for another thing.
func TestSignaturesAreOfOneCall(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	var caught http.Header
	path := ""
	mine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caught, path = r.Header.Clone(), r.RequestURI
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(mine.Close)
	call := l.Call()
	call.Provider.Fields = maps.Clone(call.Provider.Fields)
	if _, err := l.Provider.(provider.Lister).List(l.Context(), call); err != nil {
		t.Fatal(err)
	}
	call.Provider.Fields["joyent_api_url"] = mine.URL
	if _, err := l.Provider.(provider.Lister).List(l.Context(), call); err == nil || caught.Get("Authorization") == "" {
		t.Fatalf("no signature came: %v", err)
	}
	replay := func(host, path string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.Cloud.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header, r.Host = caught.Clone(), host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if status := replay("", path); status != http.StatusUnauthorized {
		t.Errorf("a signature for another address gave %d", status)
	}
	if status := replay(strings.TrimPrefix(mine.URL, "http://"), strings.Split(path, "?")[0]+"/other"); status != http.StatusUnauthorized {
		t.Errorf("a signature for another path gave %d", status)
	}
	// As it was signed it would be taken, so the test tests something.
	if status := replay(strings.TrimPrefix(mine.URL, "http://"), path); status != http.StatusOK {
		t.Errorf("the call as it was signed gave %d", status)
	}
}
