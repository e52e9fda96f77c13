package remote

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
)

// NewKey makes an ed25519 key: the private half in PEM, and the public half as a
// line of authorized_keys.
func NewKey(comment string) (private loom.Secret, line string, err error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return loom.Secret{}, "", fmt.Errorf("make an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(key, comment)
	if err != nil {
		return loom.Secret{}, "", fmt.Errorf("make an SSH key: %w", err)
	}
	own, err := ssh.NewPublicKey(public)
	if err != nil {
		return loom.Secret{}, "", fmt.Errorf("make an SSH key: %w", err)
	}
	return loom.NewSecret(string(pem.EncodeToMemory(block))), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(own))), nil
}
