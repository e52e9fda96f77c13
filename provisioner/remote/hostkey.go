package remote

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// algorithmsOf lists, by short type, the host key algorithms to offer. RSA keys
// sign with SHA-2; SHA-1 is added for old machines on request only.
var algorithmsOf = map[string][]string{
	"ed25519": {ssh.KeyAlgoED25519},
	"ecdsa":   {ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521},
	"rsa":     {ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
}

// hostKeyTypes in the order of preference.
var hostKeyTypes = []string{"ed25519", "ecdsa", "rsa"}

func shortType(key ssh.PublicKey) string {
	switch key.Type() {
	case ssh.KeyAlgoED25519:
		return "ed25519"
	case ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return "ecdsa"
	case ssh.KeyAlgoRSA:
		return "rsa"
	}
	return key.Type()
}

// EncodeHostKey returns a host key as it is recorded: its short type and base64.
func EncodeHostKey(key ssh.PublicKey) (kind, encoded string) {
	return shortType(key), base64.StdEncoding.EncodeToString(key.Marshal())
}

// hostKeyCheck verifies the key of one connection, or takes it down when none
// is recorded.
type hostKeyCheck struct {
	target Target

	mu        sync.Mutex
	seen      ssh.PublicKey
	certified bool
	refusal   error
}

// callback takes a certificate of an authority that is not ours as the plain key
// in it, as the ssh program does.
func (c *hostKeyCheck) callback(_ string, _ net.Addr, key ssh.PublicKey) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	recorded := c.target.HostKeys
	if cert, ok := key.(*ssh.Certificate); ok {
		key = cert.Key
		ours, err := certified(cert, c.target.HostCAs, append([]string{c.target.Address}, c.target.Names...))
		if err == nil {
			c.seen, c.certified = key, true
			return nil
		}
		if ours && !matches(recorded, key) {
			c.refusal = fail(ErrHostCert, err, "the host certificate of %s does not hold for it", c.target.Address)
			return c.refusal
		}
	}
	if len(recorded) > 0 && !matches(recorded, key) {
		c.refusal = hostKeyChanged(c.target.Address)
		return c.refusal
	}
	c.seen = key
	return nil
}

func (c *hostKeyCheck) vouched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.certified
}

func (c *hostKeyCheck) key() ssh.PublicKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

func (c *hostKeyCheck) refused() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusal
}

func hostKeyChanged(host string) error {
	return fail(ErrHostKeyChanged, nil, "host key of %s changed", host)
}

// matches compares the raw key with the recorded one of its type.
func matches(recorded map[string]string, key ssh.PublicKey) bool {
	want, ok := recorded[shortType(key)]
	if !ok {
		return false
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(want))
	return err == nil && bytes.Equal(raw, key.Marshal())
}

// algorithms restricts the handshake to the recorded types, so that a server
// cannot choose a type that was never recorded. Certificates come first where
// somebody is trusted to sign them.
func algorithms(t Target) ([]string, error) {
	kinds := hostKeyTypes
	if len(t.HostKeys) > 0 {
		kinds = sortedKinds(t.HostKeys)
	}
	var certificates, list []string
	for _, preferred := range hostKeyTypes {
		for _, kind := range kinds {
			if kind == preferred {
				certificates = append(certificates, certificatesOf[kind]...)
				list = append(list, algorithmsOf[kind]...)
				if kind == "rsa" && t.Legacy {
					list = append(list, ssh.KeyAlgoRSA)
				}
			}
		}
	}
	if len(list) == 0 {
		return nil, fail(ErrCredentials, nil, "none of the recorded host keys has a known type (%s); known are ed25519, ecdsa and rsa", strings.Join(kinds, ", "))
	}
	if len(t.HostCAs) > 0 {
		list = append(certificates, list...)
	}
	return list, nil
}

var errScanned = errors.New("host key seen")

// ScanHostKey connects once per key type and gives the host's keys by short
// type, in base64. It logs in nowhere. A host without any SSH answer gives
// ErrUnreachable.
func (d *Dialer) ScanHostKey(ctx context.Context, t Target) (map[string]string, error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	keys := map[string]string{}
	var failure error
	for _, kind := range hostKeyTypes {
		group.Go(func() {
			check := &hostKeyCheck{}
			config := &ssh.ClientConfig{User: t.user(), HostKeyAlgorithms: algorithmsOf[kind],
				HostKeyCallback: func(host string, addr net.Addr, key ssh.PublicKey) error {
					_ = check.callback(host, addr, key)
					return errScanned
				}}
			if t.Legacy && kind == "rsa" {
				config.HostKeyAlgorithms = append([]string{}, append(algorithmsOf[kind], ssh.KeyAlgoRSA)...)
			}
			if t.Legacy {
				allowLegacy(config)
			}
			_, err := d.handshake(ctx, t, config)
			mu.Lock()
			defer mu.Unlock()
			if key := check.key(); key != nil {
				short, encoded := EncodeHostKey(key)
				keys[short] = encoded
			} else if !isNegotiation(err) {
				failure = dialError(ctx, t, check, err)
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		if failure == nil {
			failure = fail(ErrUnreachable, nil, "%s offers no host key of a known type (ed25519, ecdsa, rsa)", t.HostPort())
		}
		return nil, failure
	}
	return keys, nil
}

func isNegotiation(err error) bool {
	var negotiation *ssh.AlgorithmNegotiationError
	return errors.As(err, &negotiation)
}
