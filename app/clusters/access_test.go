package clusters_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"
	"golang.org/x/crypto/ssh"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

func (b *bundle) accessOf(actor loom.Actor, id loom.ClusterID) []clusters.Access {
	b.t.Helper()
	v, err := b.clusters.Overview(b.ctx, actor, id)
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := b.clusters.SSHAccess(b.ctx, actor, v.Cluster)
	if err != nil {
		b.t.Fatal(err)
	}
	var ways []clusters.Access
	for i := range v.Nodes {
		ways = append(ways, s.Best(&v.Nodes[i]))
	}
	return ways
}

// What a task that succeeded says is on the machine is kept; what a service says is not,
// nor what a try that failed says.
func TestOnlyMachinesReportTheirKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(b.ana(), 2).Cluster
	b.runTasks("")
	lines, mine := b.keys("ana", 1)
	b.recorded(id, mine...)
	reported := loom.AutomatorResults("shell", map[string]any{loom.KeysFact: []string{"SHA256:planted"}})
	data, err := json.Marshal(reported)
	if err != nil {
		t.Fatal(err)
	}
	b.db.MustExec(`UPDATE nodes SET results = results || $2::jsonb WHERE cluster_id = $1`, int64(id), string(data))
	v := b.cluster(id)
	for _, n := range v.Nodes {
		if there, known := n.Keys(); !known || !slices.Equal(there, mine) {
			t.Errorf("node %d has %v of %v", n.Number, there, lines)
		}
	}
}

// Each viewer is told of the way that works for him.
func TestSSHAccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(b.ana(), 2).Cluster
	b.runTasks("")
	is := func(when string, actor loom.Actor, want clusters.Access) {
		t.Helper()
		for _, way := range b.accessOf(actor, id) {
			if way != want {
				t.Errorf("%s: %s gets in by %q, want %q", when, actor.User, way, want)
			}
		}
	}
	key, err := b.clusters.Key(b.ctx, b.ana(), id)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(key.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	cluster := ssh.FingerprintSHA256(signer.PublicKey())
	is("a node without the fact counts as having no own key", b.ana(), clusters.AccessClusterKey)
	_, mine := b.keys("ana", 2)
	is("a key in the account is on no machine yet", b.ana(), clusters.AccessClusterKey)
	b.recorded(id, cluster, mine[1])
	is("one of two keys is on it", b.ana(), clusters.AccessOwnKey)
	is("which is not another's", b.admin(), clusters.AccessClusterKey)
	b.keys("ana", 1)
	is("the account has another key now", b.ana(), clusters.AccessClusterKey)
	b.recorded(id, mine...)
	is("the key of the cluster is not on it", b.ana(), clusters.AccessNone)
	_, err = b.clusters.Key(b.ctx, b.ana(), id)
	wantKind(t, err, loom.NotFound)
	v := b.cluster(id)
	for _, n := range v.Nodes {
		b.db.MustExec(`INSERT INTO secrets (tenant_id, entity, field, sealed, updated_by) VALUES ($1, $2, 'ssh-auth', 'x', 'system')`, b.tenant, store.NodeSecrets(n.ID))
	}
	is("the machine has a password", b.ana(), clusters.AccessPassword)
	if n := b.count(`SELECT count(*) FROM audit WHERE verb = 'reveal' AND kind = 'cluster' AND result = 'ok'`); n != 1 {
		t.Errorf("%d downloads in the audit, want 1", n)
	}
}

// Where the provider brings the sign-in no pair is made, there is none to download, and
// what is shown is that nobody has a way in until keys are added.
func TestProviderWithItsOwnSignIn(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]loom.Provider{
		"key":      {Fields: map[string]any{"ssh_key_resource": "prod"}},
		"password": {Fields: map[string]any{}, Sealed: []string{loom.FieldSSHPassword}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p.Base, p.Type = loom.Base{Name: "lab"}, "lab"
			b.save(b.tenant, loom.KindProvider, &p)
			id := b.create(b.ana(), 2).Cluster
			b.runTasks("")
			if n := b.count(`SELECT count(*) FROM secrets WHERE entity LIKE 'cluster:%'`); n != 0 {
				t.Errorf("%d values are sealed for the cluster", n)
			}
			if ways := b.accessOf(b.ana(), id); !slices.Equal(ways, []clusters.Access{clusters.AccessNone, clusters.AccessNone}) {
				t.Errorf("ways %q", ways)
			}
			_, err := b.clusters.Key(b.ctx, b.ana(), id)
			wantKind(t, err, loom.NotFound)
			_, mine := b.keys("ana", 1)
			b.recorded(id, mine...)
			if ways := b.accessOf(b.ana(), id); !slices.Equal(ways, []clusters.Access{clusters.AccessOwnKey, clusters.AccessOwnKey}) {
				t.Errorf("with own keys: ways %q", ways)
			}
		})
	}
}

func TestRevealIsAuditedAndOnlyForTheClustersOwnKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	node := v.Nodes[0].ID
	got, err := b.clusters.Reveal(b.ctx, b.ana(), ref.Cluster, node)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(got.PrivateKey.Reveal()))
	if err != nil || got.User != "ops" || !got.Password.IsZero() {
		t.Fatalf("%+v, %v", got, err)
	}
	sealed, err := store.Secrets(b.ctx, b.db.DB, b.tenant, store.ClusterSecrets(ref.Cluster))
	if err != nil {
		t.Fatal(err)
	}
	line, err := b.ring.Open(b.tenant, store.ClusterSecrets(ref.Cluster), "ssh_public_key", sealed["ssh_public_key"])
	if err != nil {
		t.Fatal(err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line.Reveal()))
	if err != nil || string(public.Marshal()) != string(signer.PublicKey().Marshal()) {
		t.Errorf("the two keys are no pair: %v", err)
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE verb = 'reveal' AND after::text NOT LIKE '%PRIVATE%'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}

	b.db.MustExec(`UPDATE nodes SET results = '{"ssh-auth": {"user": "root", "password": "made-up"}}' WHERE id = $1`, node)
	got, err = b.clusters.Reveal(b.ctx, b.admin(), ref.Cluster, node)
	if err != nil || got.User != "root" || got.Password.Reveal() != "made-up" {
		t.Errorf("%+v, %v", got, err)
	}
	v, err = b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if auth, _ := v.Nodes[0].Results["ssh-auth"].(map[string]any); err != nil || auth["password"] == "made-up" {
		t.Errorf("the view shows the password: %v, %v", v.Nodes[0].Results, err)
	}

	// A credential of the provider is not the machine's, wherever it is stored.
	for _, field := range []string{"api_token", "ssh_password"} {
		plain := map[string]string{"api_token": "made-up", "ssh_password": "a newer one"}[field]
		entity := store.ProviderSecrets("lab")
		b.exec(func(tx *sqlx.Tx) error {
			bytes, err := b.ring.Seal(b.tenant, entity, field, loom.NewSecret(plain))
			if err != nil {
				return err
			}
			return store.PutSecrets(b.ctx, tx, b.tenant, entity, "admin", map[string][]byte{field: bytes})
		})
		got, err = b.clusters.Reveal(b.ctx, b.ana(), ref.Cluster, node)
		if err != nil || !got.Password.IsZero() || got.PrivateKey.IsZero() {
			t.Errorf("%s: %+v, %v", field, got, err)
		}
		b.db.MustExec(`DELETE FROM secrets WHERE entity = 'provider:lab'`)
	}

	// With a key of the tenant nothing was made, and nothing is shown.
	b.save(b.tenant, loom.KindProvider, &loom.Provider{Base: loom.Base{Name: "lab"}, Type: "lab", Fields: map[string]any{"ssh_key_resource": "prod"}})
	keyed := b.create(b.ana(), 2)
	v, err = b.clusters.Cluster(b.ctx, b.ana(), keyed.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.clusters.Reveal(b.ctx, b.ana(), keyed.Cluster, v.Nodes[0].ID)
	wantKind(t, err, loom.NotFound)
}
