package sshtest

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// Key is a key pair for tests.
type Key struct {
	// PEM is the private key in OpenSSH form.
	PEM string
	// Authorized is the public key as a line of authorized_keys, without a comment.
	Authorized string
	// Type is the short type ("ed25519", "ecdsa", "rsa"), Blob the public key in
	// base64, as host keys are recorded.
	Type, Blob string
}

// NewKey makes a key pair of a short type: "ed25519", "ecdsa" or "rsa". A
// passphrase that is not empty encrypts the private key.
func NewKey(tb testing.TB, kind, passphrase string) Key {
	tb.Helper()
	var private any
	var err error
	switch kind {
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		tb.Fatalf("unknown key type %q", kind)
	}
	if err != nil {
		tb.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		tb.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		tb.Fatal(err)
	}
	public := signer.PublicKey()
	line := string(ssh.MarshalAuthorizedKey(public))
	return Key{PEM: string(pem.EncodeToMemory(block)), Authorized: line[:len(line)-1], Type: kind,
		Blob: base64.StdEncoding.EncodeToString(public.Marshal())}
}

// keyOf reads a private key that was made elsewhere.
func keyOf(tb testing.TB, private string) Key {
	tb.Helper()
	signer, err := ssh.ParsePrivateKey([]byte(private))
	if err != nil {
		tb.Fatal(err)
	}
	line := string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
	kinds := map[string]string{ssh.KeyAlgoED25519: "ed25519", ssh.KeyAlgoECDSA256: "ecdsa", ssh.KeyAlgoRSA: "rsa"}
	return Key{PEM: private, Authorized: line[:len(line)-1], Type: kinds[signer.PublicKey().Type()],
		Blob: base64.StdEncoding.EncodeToString(signer.PublicKey().Marshal())}
}

// certificate returns the line of a host certificate.
func certificate(tb testing.TB, authority, key Key, names []string) string {
	tb.Helper()
	signer, err := ssh.ParsePrivateKey([]byte(authority.PEM))
	if err != nil {
		tb.Fatal(err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key.Authorized))
	if err != nil {
		tb.Fatal(err)
	}
	cert := &ssh.Certificate{Key: public, CertType: ssh.HostCert, KeyId: "test", ValidPrincipals: names, ValidBefore: ssh.CertTimeInfinity}
	if slices.Contains(names, "expired") {
		cert.ValidBefore = uint64(time.Now().Add(-time.Hour).Unix()) //nolint:gosec // after 1970
	}
	if err := cert.SignCert(rand.Reader, signer); err != nil {
		tb.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(cert))
}
