package clusters

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/app/store"
)

// sealCluster seals what a cluster keeps secret: the sensitive provider fields
// of its request and, where its machines have no other key, a key pair made for
// this cluster alone.
func (u *Clusters) sealCluster(tenant loom.TenantID, id loom.ClusterID, p loom.Provider, fields map[string]loom.Secret) (map[string][]byte, error) {
	values := maps.Clone(fields)
	if values == nil {
		values = map[string]loom.Secret{}
	}
	if _, own := values[loom.FieldPrivateKey]; !own && !bringsSignIn(p) {
		private, public, err := newKeyPair(id)
		if err != nil {
			return nil, err
		}
		values[loom.FieldPrivateKey], values[loom.FieldPublicKey] = private, loom.NewSecret(public)
	}
	return u.seal(tenant, id, values)
}

// bringsSignIn reports whether a provider says itself how its machines are signed in to,
// with a key of the tenant or a password of theirs: a key of the cluster is on none then.
func bringsSignIn(p loom.Provider) bool {
	name, _ := p.Fields[fieldKeyResource].(string)
	password, _ := p.Fields[loom.FieldSSHPassword].(string)
	return name != "" || password != "" || slices.Contains(p.Sealed, loom.FieldSSHPassword)
}

// seal seals values for a cluster, in the order of their names so that an error
// is always about the same one.
func (u *Clusters) seal(tenant loom.TenantID, id loom.ClusterID, values map[string]loom.Secret) (map[string][]byte, error) {
	sealed := make(map[string][]byte, len(values))
	for _, field := range slices.Sorted(maps.Keys(values)) {
		data, err := u.ring.Seal(tenant, store.ClusterSecrets(id), field, values[field])
		if err != nil {
			return nil, fmt.Errorf("seal %s of cluster %s: %w", field, id, err)
		}
		sealed[field] = data
	}
	return sealed, nil
}

// newKeyPair makes an ed25519 pair: the private key in PEM (OpenSSH form), the
// public one as an authorized_keys line that says whose it is.
func newKeyPair(id loom.ClusterID) (private loom.Secret, public string, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return private, "", fmt.Errorf("make the key pair of cluster %s: %w", id, err)
	}
	comment := "loom cluster " + id.String()
	block, err := ssh.MarshalPrivateKey(priv, comment)
	if err != nil {
		return private, "", fmt.Errorf("encode the private key of cluster %s: %w", id, err)
	}
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		return private, "", fmt.Errorf("encode the public key of cluster %s: %w", id, err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " " + comment
	return loom.NewSecret(string(pem.EncodeToMemory(block))), line, nil
}

// fingerprint gives that of a public key in authorized_keys form, "" for what is none.
func fingerprint(line string) string {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return ""
	}
	return ssh.FingerprintSHA256(key)
}
