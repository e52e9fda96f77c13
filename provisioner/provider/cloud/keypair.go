package cloud

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
)

// Pair is a key pair as the cloud knows it, with what it tells of the public key.
type Pair struct {
	// Name is what the cloud and the fields call it.
	Name string
	// Public is as in authorized_keys, Fingerprint as OpenSSH writes it or wrote it once;
	// either may be missing.
	Public, Fingerprint string
}

// CheckPair looks whether the cloud has the key pair of the field ssh_keypair, and
// whether it is that of the private key in ssh_key_resource: machines with another one
// cannot be signed in to. of says whose key pair it is.
// Without the name of a pair it looks at the private key alone.
func (s *Session) CheckPair(ctx context.Context, call *loom.ProviderCall, probe *loom.Probe, of string, look func(ctx context.Context, name string) (Pair, error)) {
	name := s.Fields.Text("ssh_keypair")
	own, err := privateKey(ctx, call)
	if err != nil || name == "" {
		CheckKey(ctx, call, probe)
		return
	}
	var pair Pair
	if !s.Look(ctx, probe, StepKeyPair, "", func(ctx context.Context) (err error) {
		pair, err = look(ctx, name)
		return err
	}) {
		return
	}
	if own == nil {
		probe.Check(StepKeyPair, true, fmt.Sprintf("%s has the key pair “%s”.", of, name))
		return
	}
	switch same, known := pair.of(own); {
	case !known:
		probe.Check(StepKeyPair, true, fmt.Sprintf("%s has the key pair “%s”. It does not tell the public key, so whether that of ssh_key_resource fits is not known.", of, name))
	case !same:
		probe.Check(StepKeyPair, false, fmt.Sprintf("%s has the key pair “%s”, but its key is not that of the private key “%s”, whose fingerprint is %s. Import that public key there, or name the private key that fits (provider fields ssh_keypair and ssh_key_resource).",
			of, name, s.Fields.Text("ssh_key_resource"), ssh.FingerprintSHA256(own)))
	default:
		probe.Check(StepKeyPair, true, fmt.Sprintf("%s has the key pair “%s”, which fits the private key.", of, name))
	}
}

// of reports whether the pair is that of a public key, and whether that is known.
func (p Pair) of(own ssh.PublicKey) (same, known bool) {
	if public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(p.Public)); err == nil {
		return string(public.Marshal()) == string(own.Marshal()), true
	}
	print := strings.TrimRight(strings.TrimSpace(p.Fingerprint), "=")
	switch {
	case strings.HasPrefix(print, "SHA256:"):
		return print == ssh.FingerprintSHA256(own), true
	case len(print) == len(ssh.FingerprintLegacyMD5(own)):
		return strings.EqualFold(print, ssh.FingerprintLegacyMD5(own)), true
	}
	return false, false
}

// privateKey returns the public part of the private key in ssh_key_resource; nil where the
// field is empty.
func privateKey(ctx context.Context, call *loom.ProviderCall) (ssh.PublicKey, error) {
	spec := &loom.TaskSpec{Provider: call.Provider}
	spec.Results = map[string]any{"ssh-auth": Auth(spec, "")}
	if Fields(call.Provider.Fields).Text("ssh_key_resource") == "" {
		return nil, nil
	}
	target, err := remote.TargetOf(spec, provider.EnvOf(ctx).Files)
	if err != nil || len(target.Keys) == 0 {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey([]byte(target.Keys[0].Reveal()))
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		signer, err = ssh.ParsePrivateKeyWithPassphrase([]byte(target.Keys[0].Reveal()), []byte(target.Passphrase.Reveal()))
	}
	if err != nil {
		return nil, fmt.Errorf("the private key cannot be read; give one in PEM form, and its passphrase in the field ssh_key_passphrase if it has one")
	}
	return signer.PublicKey(), nil
}
