// Package secret seals credentials at rest: a ring of keys from configuration,
// of which the first seals and all open.
//
// It stores nothing and knows no table: callers keep what Seal gives and say,
// when opening, whose it is. A sealed value moved to another tenant, entity or
// field does not open. A newcomer's usual mistake: copying sealed bytes between
// tenants; they must be opened and sealed again.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"loom/app/loom"
)

// KeySize is the length of a sealing key in bytes (AES-256).
const KeySize = 32

// A sealed value is: format byte, id of the key, nonce, ciphertext with tag.
const (
	format    = 1
	idSize    = 8
	nonceSize = 12
	tagSize   = 16
	headSize  = 1 + idSize + nonceSize
)

// Errors of opening. Both mean that the value is lost to this process; neither
// says anything about its content.
var (
	// ErrUnknownKey says that the key that sealed the value is not in the ring.
	ErrUnknownKey = errors.New("sealed with a key that is not among the sealing keys (LOOM_SECRET_KEY, or secret.key in the data directory)")
	// ErrBroken says that the value was cut, changed, or belongs elsewhere.
	ErrBroken = errors.New("sealed value is damaged or belongs to something else")
)

// Ring is a set of sealing keys. It is safe for concurrent use. One made by
// OpenFile follows its file.
type Ring struct {
	keys atomic.Pointer[keySet]
	file *keyFile // nil for keys that never change
}

// keySet are the keys at one moment; it never changes.
type keySet struct {
	first KeyID
	order []KeyID
	keys  map[KeyID]sealingKey
}

// sealingKey is a key with what is derived from it.
type sealingKey struct {
	aead cipher.AEAD
	mac  []byte
}

// ParseKeys reads LOOM_SECRET_KEY: base64 keys of 32 bytes separated by commas.
// The first one seals, all open. Errors are Invalid and never repeat the text.
func ParseKeys(text string) (*Ring, error) {
	set, err := parse(text)
	if err != nil {
		return nil, err
	}
	ring := &Ring{}
	ring.keys.Store(set)
	return ring, nil
}

func parse(text string) (*keySet, error) {
	ring := &keySet{keys: map[KeyID]sealingKey{}}
	for i, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			if strings.TrimSpace(text) == "" {
				return nil, loom.NewError(loom.Invalid, "LOOM_SECRET_KEY is empty; it needs a key of %d bytes in base64, such as “openssl rand -base64 %d” prints.", KeySize, KeySize)
			}
			continue
		}
		key, err := decodeKey(part)
		if err != nil || len(key) != KeySize {
			return nil, loom.NewError(loom.Invalid, "Key %d of LOOM_SECRET_KEY is not %d bytes in base64.", i+1, KeySize)
		}
		aead, err := newAEAD(key)
		if err != nil {
			return nil, fmt.Errorf("set up key %d: %w", i+1, err)
		}
		mac, err := hkdf.Key(sha256.New, key, nil, "loom authentication code", KeySize)
		if err != nil {
			return nil, fmt.Errorf("derive from key %d: %w", i+1, err)
		}
		id := keyID(key)
		if len(ring.keys) == 0 {
			ring.first = id
		}
		if _, twice := ring.keys[id]; !twice {
			ring.order = append(ring.order, id)
		}
		ring.keys[id] = sealingKey{aead, mac}
	}
	if len(ring.keys) == 0 {
		return nil, loom.NewError(loom.Invalid, "LOOM_SECRET_KEY names no key.")
	}
	return ring, nil
}

// GenerateKey makes a new random key in the form that ParseKeys reads.
func GenerateKey() string {
	var key [KeySize]byte
	rand.Read(key[:]) //nolint:errcheck // never fails (crypto/rand)
	return base64.StdEncoding.EncodeToString(key[:])
}

// Seal seals a secret for one field of one entity of a tenant; the entity is
// "provider:<name>" or "cluster:<id>".
func (r *Ring) Seal(tenant loom.TenantID, entity, field string, s loom.Secret) ([]byte, error) {
	return r.seal(additional("field", string(tenant), entity, field), []byte(s.Reveal()))
}

// Open gives the secret that Seal sealed for exactly this tenant, entity and
// field. Errors: ErrUnknownKey, ErrBroken.
func (r *Ring) Open(tenant loom.TenantID, entity, field string, sealed []byte) (loom.Secret, error) {
	plain, err := r.open(additional("field", string(tenant), entity, field), sealed)
	if err != nil {
		return loom.Secret{}, fmt.Errorf("open %s of %s: %w", field, entity, err)
	}
	return loom.NewSecret(string(plain)), nil
}

// SealBytes seals a file whose place is context, such as its key in the bucket.
func (r *Ring) SealBytes(context string, plain []byte) ([]byte, error) {
	return r.seal(additional("bytes", context), plain)
}

// OpenBytes gives the file that SealBytes sealed for exactly this context.
// Errors: ErrUnknownKey, ErrBroken.
func (r *Ring) OpenBytes(context string, sealed []byte) ([]byte, error) {
	plain, err := r.open(additional("bytes", context), sealed)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", context, err)
	}
	return plain, nil
}

func (r *Ring) seal(ad, plain []byte) ([]byte, error) {
	set := r.fresh()
	out := make([]byte, headSize, headSize+len(plain)+tagSize)
	out[0] = format
	copy(out[1:], set.first[:])
	nonce := out[1+idSize : headSize]
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("make a nonce: %w", err)
	}
	// The head is covered too, so that the id of the key cannot be exchanged.
	return set.keys[set.first].aead.Seal(out, nonce, plain, append(ad, out[:1+idSize]...)), nil
}

func (r *Ring) open(ad, sealed []byte) ([]byte, error) {
	if len(sealed) < headSize+tagSize || sealed[0] != format {
		return nil, ErrBroken
	}
	key, ok := r.find(KeyID(sealed[1 : 1+idSize]))
	if !ok {
		return nil, ErrUnknownKey
	}
	plain, err := key.aead.Open(nil, sealed[1+idSize:headSize], sealed[headSize:], append(ad, sealed[:1+idSize]...))
	if err != nil {
		return nil, ErrBroken
	}
	return plain, nil
}

// additional joins the parts with their lengths, so that no two different lists
// of parts give the same bytes.
func additional(parts ...string) []byte {
	var out []byte
	for _, part := range parts {
		out = binary.AppendUvarint(out, uint64(len(part)))
		out = append(out, part...)
	}
	return out
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// keyID is made by hashing, so that it gives nothing of the key away.
func keyID(key []byte) KeyID {
	sum := sha256.Sum256(append([]byte("loom sealing key id\x00"), key...))
	return KeyID(sum[:idSize])
}

func decodeKey(text string) ([]byte, error) {
	text = strings.TrimRight(text, "=")
	if key, err := base64.RawStdEncoding.DecodeString(text); err == nil {
		return key, nil
	}
	return base64.RawURLEncoding.DecodeString(text)
}
