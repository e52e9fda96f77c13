package joyent

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// authorizer adds to a call what proves who makes it.
type authorizer func(r *http.Request) error

// basic signs in with a password, which only old installations take.
func basic(login, password string) authorizer {
	return func(r *http.Request) error {
		r.SetBasicAuth(login, password)
		return nil
	}
}

// signature signs calls with a key of the account: what is asked for, of whom and when.
// Whoever gets a call at an address that he chose can do nothing with it elsewhere.
func signature(login, name string, private, passphrase loom.Secret) (authorizer, error) {
	key, err := ssh.ParseRawPrivateKey([]byte(private.Reveal()))
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) && !passphrase.IsZero() {
		key, err = ssh.ParseRawPrivateKeyWithPassphrase([]byte(private.Reveal()), []byte(passphrase.Reveal()))
	}
	switch {
	case errors.As(err, &locked):
		return nil, cloud.Errorf(cloud.Credentials, "the private key in ssh_key_resource needs a passphrase; set the provider field ssh_key_passphrase")
	case err != nil:
		// The cause is left out: parsers like to quote what they read.
		return nil, cloud.Errorf(cloud.Credentials, "the private key in ssh_key_resource cannot be read; give one in PEM form (OpenSSH, PKCS#1, PKCS#8 or EC)")
	}
	var signer crypto.Signer
	algorithm := ""
	switch k := key.(type) {
	case *rsa.PrivateKey:
		signer, algorithm = k, "rsa-sha256"
	case *ecdsa.PrivateKey:
		signer, algorithm = k, "ecdsa-sha256"
	default:
		return nil, cloud.Errorf(cloud.Credentials, "the private key in ssh_key_resource is of a type that Triton takes no signatures of; use an RSA or ECDSA key")
	}
	id := "/" + login + "/keys/" + name
	return func(r *http.Request) error {
		date := time.Now().UTC().Format(http.TimeFormat)
		sum := sha256.Sum256([]byte("(request-target): " + strings.ToLower(r.Method) + " " + r.URL.RequestURI() + "\nhost: " + r.Host + "\ndate: " + date))
		signed, err := signer.Sign(rand.Reader, sum[:], crypto.SHA256)
		if err != nil {
			return cloud.Errorf(cloud.Credentials, "the private key in ssh_key_resource signs nothing")
		}
		r.Header.Set("Date", date)
		r.Header.Set("Authorization", fmt.Sprintf(`Signature keyId="%s",algorithm="%s",headers="(request-target) host date",signature="%s"`,
			id, algorithm, base64.StdEncoding.EncodeToString(signed)))
		return nil
	}, nil
}
