package provider

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"maps"
	"mime/multipart"
	"net/textproto"
	"strings"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/remote"
)

// HostKey is an SSH host key that Loom makes for a machine and passes to it by
// user data, so that the first sign-in is verified.
type HostKey struct {
	private loom.Secret // OpenSSH form
	public  string      // as in an authorized_keys file
	kinds   map[string]string
}

// InjectedHostKey makes the host key of the node's machine if the field
// inject_host_key is on, and gives nil if it is off. auth is the result "ssh-auth"
// that CREATE will report.
//
// The key is derived from the node's idempotency key and the private key that opens
// the machine, so that a CREATE that is repeated asks for the same machine again.
// Without a private key there is none, which is an error of kind
// remote.ErrCredentials, for remote.Failure.
func InjectedHostKey(ctx context.Context, spec *loom.TaskSpec, auth map[string]any) (*HostKey, error) {
	if !loom.SwitchedOn(spec.Provider.Fields[FieldInjectHostKey]) {
		return nil, nil
	}
	as := *spec
	as.Results = maps.Clone(spec.Results)
	if as.Results == nil {
		as.Results = map[string]any{}
	}
	as.Results["ssh-auth"] = auth
	target, err := remote.TargetOf(&as, EnvOf(ctx).Files)
	if err != nil {
		return nil, err
	}
	if len(target.Keys) == 0 {
		return nil, &remote.Error{Kind: remote.ErrCredentials, Text: "inject_host_key needs an SSH key; name one in ssh_key_resource, or turn the field off"}
	}
	return NewHostKey(target.Keys[0], spec.IdempotencyKey)
}

// NewHostKey derives an ed25519 host key from a secret and a text; both must be
// there. Whoever learns the host key learns nothing of the secret.
func NewHostKey(secret loom.Secret, of string) (*HostKey, error) {
	if secret.IsZero() || of == "" {
		return nil, fmt.Errorf("make a host key: the secret or the idempotency key is missing")
	}
	seed, err := hkdf.Key(sha256.New, []byte(secret.Reveal()), []byte(of), "loom ssh host key", ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	kind, encoded := remote.EncodeHostKey(public)
	return &HostKey{private: loom.NewSecret(openSSH(private, public)), public: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public))),
		kinds: map[string]string{kind: encoded}}, nil
}

// openSSH writes a private key in the one form that every sshd reads. The library's
// own function puts random numbers into it, so that no two texts are the same.
func openSSH(private ed25519.PrivateKey, public ssh.PublicKey) string {
	const check = 0x6c6f6f6d // any number, twice: it tells a wrong passphrase
	secret := ssh.Marshal(struct {
		Check1, Check2  uint32
		Kind            string
		Public, Private []byte
		Comment         string
	}{check, check, ssh.KeyAlgoED25519, private.Public().(ed25519.PublicKey), private, "loom"})
	for i := byte(1); len(secret)%8 != 0; i++ {
		secret = append(secret, i)
	}
	whole := ssh.Marshal(struct {
		Cipher, Derivation, Options string
		Keys                        uint32
		Public, Secret              []byte
	}{"none", "none", "", 1, public.Marshal(), secret})
	return string(pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: append([]byte("openssh-key-v1\x00"), whole...)}))
}

// Recorded is what CREATE reports as result "ssh_host_keys", with the provider id:
// from then on only this key is accepted, by Confirm too. A machine that was
// adopted and may not have got the key must not have it recorded.
func (k *HostKey) Recorded() map[string]string { return maps.Clone(k.kinds) }

// in reports whether recorded host keys are this one.
func (k *HostKey) in(recorded map[string]string) bool {
	for kind, key := range k.kinds {
		if recorded[kind] != key {
			return false
		}
	}
	return true
}

// UserData returns the user data for cloud-init that installs the key as the
// machine's only host key, together with the user's own user data, which may be
// empty. The result is a secret. It is not encoded; clouds that want base64 get
// it from their client. The error says that the own user data cannot be combined.
func (k *HostKey) UserData(own []byte) ([]byte, error) {
	var config strings.Builder
	config.WriteString("#cloud-config\nssh_deletekeys: true\nssh_keys:\n  ed25519_private: |\n")
	for line := range strings.Lines(k.private.Reveal()) {
		config.WriteString("    " + line)
	}
	fmt.Fprintf(&config, "  ed25519_public: %s\n", k.public)
	if len(bytes.TrimSpace(own)) == 0 {
		return []byte(config.String()), nil
	}
	kind := userDataKind(own)
	if kind == "" {
		return nil, fmt.Errorf("the user data is neither a script (#!) nor #cloud-config nor #include, so no host key can be added; change it, or turn inject_host_key off")
	}
	// The boundary is fixed: a repeated CREATE must ask for the very same.
	var out bytes.Buffer
	parts := multipart.NewWriter(&out)
	sum := sha256.Sum256(append([]byte(k.public), own...))
	if err := parts.SetBoundary(fmt.Sprintf("loom-%x", sum[:16])); err != nil {
		return nil, fmt.Errorf("combine user data: %w", err)
	}
	fmt.Fprintf(&out, "Content-Type: multipart/mixed; boundary=\"%s\"\nMIME-Version: 1.0\n\n", parts.Boundary())
	for _, part := range []struct {
		kind    string
		content []byte
	}{{kind, own}, {"text/cloud-config", []byte(config.String())}} {
		// Lists and maps of both parts are kept; in a clash the later part wins.
		header := textproto.MIMEHeader{"Content-Type": {part.kind + `; charset="utf-8"`}, "MIME-Version": {"1.0"},
			"Content-Transfer-Encoding": {"8bit"}}
		if part.kind == "text/cloud-config" {
			header["Merge-Type"] = []string{"list(append)+dict(recurse_array,replace)+str()"}
		}
		w, err := parts.CreatePart(header)
		if err == nil {
			_, err = w.Write(part.content)
		}
		if err != nil {
			return nil, fmt.Errorf("combine user data: %w", err)
		}
	}
	if err := parts.Close(); err != nil {
		return nil, fmt.Errorf("combine user data: %w", err)
	}
	return out.Bytes(), nil
}

// userDataKind tells how cloud-init reads user data, by its first line.
func userDataKind(own []byte) string {
	text := string(own)
	for _, k := range []struct{ begin, kind string }{
		{"#!", "text/x-shellscript"}, {"#cloud-config", "text/cloud-config"}, {"#include", "text/x-include-url"}, {"#cloud-boothook", "text/cloud-boothook"},
	} {
		if strings.HasPrefix(text, k.begin) {
			return k.kind
		}
	}
	return ""
}
