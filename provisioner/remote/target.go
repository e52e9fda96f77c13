package remote

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/resource"
)

// Target says where and as whom to log in.
type Target struct {
	// Node is the key under which a Pool keeps the connection; empty: the address.
	Node    loom.NodeID
	Address string
	// Port of SSH, 22 when 0.
	Port int
	// User to log in as, loom.DefaultSSHUser when empty.
	User string
	// Keys are private keys in PEM (OpenSSH, PKCS#1, PKCS#8, EC), tried in order;
	// Passphrase opens those that are encrypted.
	Keys       []loom.Secret
	Passphrase loom.Secret
	// Password is tried after the keys, also for keyboard-interactive questions.
	Password loom.Secret
	// HostKeys are the recorded keys by short type ("ed25519", "ecdsa", "rsa") in
	// base64 as in a known_hosts line. Empty: the key is learned, see
	// Conn.HostKeys.
	HostKeys map[string]string
	// HostCAs are public keys of authorities, as in an authorized_keys line: a host
	// certificate that one of them signed for Address or one of Names is accepted
	// whatever HostKeys say.
	HostCAs []string
	// Names by which a host certificate may speak of the machine, besides Address.
	Names []string
	// Legacy allows SHA-1 algorithms, for old machines.
	Legacy bool
	// Jump are the hosts to pass on the way, in their order; the Jump of each is not
	// looked at. Machines behind one jump host share a connection to it.
	Jump []Target
	// Reach says which addresses may be connected to; the zero value: public ones. Only
	// the first jump host, or the machine where there is none, is what Loom itself
	// connects to.
	Reach loom.Reach
}

// TargetOf says how to log in to the node of a task. files is the directory
// "<set>/providertypes/<type>" with the provider's resources; it may be empty.
// Errors are of kind ErrCredentials or come from reading a key file.
func TargetOf(spec *loom.TaskSpec, files string) (Target, error) {
	auth, _ := spec.Results["ssh-auth"].(map[string]any)
	t := Target{
		Node: spec.Node, Address: spec.Addresses[loom.AccessV4], Port: number(spec.Results["ssh_port"]),
		User: text(auth["user"]), Password: loom.NewSecret(text(auth["password"])),
		HostKeys: HostKeysOf(spec), Passphrase: loom.NewSecret(text(spec.Provider.Fields["ssh_key_passphrase"])),
		Legacy: loom.SwitchedOn(spec.Provider.Fields["legacy_ssh_algorithms"]), Reach: spec.Reach,
	}
	if t.Password.IsZero() { // facts of a node hold only what was made for it
		t.Password = loom.NewSecret(strings.TrimSpace(text(spec.Provider.Fields[loom.FieldSSHPassword])))
	}
	if t.User == "" {
		t.User = spec.SSHUser
	}
	if !spec.PrivateKey.IsZero() {
		t.Keys = append(t.Keys, spec.PrivateKey)
	}
	if encoded := text(spec.Provider.Fields[loom.FieldPrivateKey]); encoded != "" {
		pem, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
		if err != nil {
			return t, fail(ErrCredentials, nil, "provider field ssh_keyfile is not base64; give the private key file encoded with base64")
		}
		t.Keys = append(t.Keys, loom.NewSecret(string(pem)))
	} else if name := identityOf(spec, auth, t); name != "" {
		key, err := readIdentity(files, name)
		if err != nil {
			return t, err
		}
		t.Keys = append(t.Keys, key)
	}
	if spec.Hostname != "" {
		t.Names = []string{spec.Hostname}
	}
	var err error
	if t.HostCAs, err = hostCAs(text(spec.Provider.Fields["ssh_host_ca"])); err != nil {
		return t, err
	}
	t.Jump, err = jumpsOf(spec, files, t)
	return t, err
}

// identityOf names the key resource of a node: the recorded one, else the provider's where
// there is nothing else to sign in with, as after a change from a password to a key.
func identityOf(spec *loom.TaskSpec, auth map[string]any, t Target) string {
	name := text(auth["identityfile"])
	key := strings.TrimSpace(text(spec.Provider.Fields["ssh_key_resource"]))
	if name == "" && key != "" && t.Password.IsZero() && len(t.Keys) == 0 {
		name = "ssh_keys/" + key[strings.LastIndexByte(key, '/')+1:]
	}
	return name
}

// maxIdentity is the most that is read of a key, in bytes.
const maxIdentity = 64 << 10

// readIdentity takes the last two path elements of an identity file ("ssh_keys/
// prod"): imported data holds absolute paths of another installation.
func readIdentity(files, name string) (loom.Secret, error) {
	elements := strings.Split(strings.Trim(name, "/"), "/")
	if len(elements) > 2 {
		elements = elements[len(elements)-2:]
	}
	relative := strings.Join(elements, "/")
	typ, key, _ := strings.Cut(relative, "/")
	pem, err := resource.Read(files, typ, key, maxIdentity)
	if errors.Is(err, resource.ErrNotThere) {
		return loom.Secret{}, fail(ErrCredentials, nil, "the SSH key %q is not in use; upload it under Files, release it, and try again", relative)
	}
	if err != nil {
		return loom.Secret{}, fmt.Errorf("read SSH key resource %s: %w", relative, err)
	}
	return loom.NewSecret(string(pem)), nil
}

// HostKeysOf returns the host keys recorded for the node of a task, or nil.
func HostKeysOf(spec *loom.TaskSpec) map[string]string {
	return hostKeys(spec.Results["ssh_host_keys"])
}

// hostKeys reads keys by short type as results hold them, nil when there are none.
func hostKeys(value any) map[string]string {
	keys := map[string]string{}
	switch recorded := value.(type) {
	case map[string]any:
		for kind, key := range recorded {
			if s := text(key); s != "" {
				keys[kind] = s
			}
		}
	case map[string]string:
		for kind, key := range recorded {
			keys[kind] = key
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return keys
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func number(value any) int {
	n, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil {
		return 0
	}
	return n
}

func (t Target) port() int {
	if t.Port == 0 {
		return 22
	}
	return t.Port
}

func (t Target) user() string {
	if t.User == "" {
		return loom.DefaultSSHUser
	}
	return t.User
}

// HostPort gives "address:port", with brackets for IPv6.
func (t Target) HostPort() string { return net.JoinHostPort(t.Address, strconv.Itoa(t.port())) }

// slotKey names the slot of a Pool.
func (t Target) slotKey() string {
	if t.Node != "" {
		return string(t.Node)
	}
	return t.user() + "@" + t.HostPort()
}

// identity changes when a kept connection must not be used any longer: other
// address, user or credentials, or another reach. Host keys are compared with the connection's.
func (t Target) identity() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %t %q %s", t.HostPort(), t.user(), t.Password.Reveal(), t.Passphrase.Reveal(), t.Legacy, t.HostCAs, t.Reach.Key())
	for _, key := range t.Keys {
		fmt.Fprintf(h, " %q", key.Reveal())
	}
	for _, hop := range t.Jump {
		fmt.Fprintf(h, " by %s", hop.identity())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// signers parses the keys. One that does not parse is an error, since silently
// leaving it out ends in a puzzling refusal.
func (t Target) signers() ([]ssh.Signer, error) {
	var signers []ssh.Signer
	for i, key := range t.Keys {
		signer, err := ssh.ParsePrivateKey([]byte(key.Reveal()))
		var locked *ssh.PassphraseMissingError
		if errors.As(err, &locked) && !t.Passphrase.IsZero() {
			signer, err = ssh.ParsePrivateKeyWithPassphrase([]byte(key.Reveal()), []byte(t.Passphrase.Reveal()))
		}
		switch {
		case errors.As(err, &locked):
			return nil, fail(ErrCredentials, nil, "SSH key %d of %s needs a passphrase; set the provider field ssh_key_passphrase", i+1, t.user())
		case err != nil:
			// The cause is left out: parsers like to quote what they read.
			return nil, fail(ErrCredentials, nil, "SSH key %d of %s cannot be read; give a private key in PEM form (OpenSSH, PKCS#1, PKCS#8 or EC)", i+1, t.user())
		}
		signers = append(signers, signer)
	}
	return signers, nil
}

func (t Target) methods() ([]ssh.AuthMethod, error) {
	signers, err := t.signers()
	if err != nil {
		return nil, err
	}
	var methods []ssh.AuthMethod
	if len(signers) > 0 {
		methods = append(methods, ssh.PublicKeys(signers...))
	}
	if !t.Password.IsZero() {
		password := t.Password.Reveal()
		methods = append(methods, ssh.Password(password), ssh.KeyboardInteractive(
			func(_, _ string, questions []string, _ []bool) ([]string, error) {
				answers := make([]string, len(questions))
				for i := range answers {
					answers[i] = password
				}
				return answers, nil
			}))
	}
	if len(methods) == 0 {
		return nil, fail(ErrCredentials, nil, "no SSH key and no password for %s@%s; name an SSH key resource in the provider", t.user(), t.Address)
	}
	return methods, nil
}

func sortedKinds(keys map[string]string) []string {
	kinds := make([]string, 0, len(keys))
	for kind := range keys {
		kinds = append(kinds, kind)
	}
	sort.Strings(kinds)
	return kinds
}
