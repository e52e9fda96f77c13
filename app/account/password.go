package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"loom/app/loom"
	"loom/app/store"
)

// Lengths of a password, in characters.
const (
	minPassword = 10
	maxPassword = 200
)

// Parameters of argon2id: 64 MiB, one pass, two lanes, about 50 ms. They are kept
// in every hash, so they can be raised without losing passwords.
const (
	argonMemory = 64 * 1024 // KiB
	argonTime   = 1
	argonLanes  = 2
	argonKey    = 32 // bytes
	argonSalt   = 16 // bytes
)

// maxHashing bounds the memory that sign-ins take at once, 64 MiB each. What they leave
// would count as much again before the collector comes by itself, so it is called after as
// many, and once more, to give the memory back, when there was none for hashRest.
const (
	maxHashing = 2
	hashRest   = 10 * time.Second
)

// passwords hashes and compares, a few at a time.
type passwords struct {
	slots chan struct{}
	// hashed counts the hashes that were computed, rest gives back the memory.
	hashed atomic.Int64
	rest   *time.Timer
	// decoy is compared with when there is no user, so that the answer takes as long.
	decoy string
}

func newPasswords() *passwords {
	p := &passwords{slots: make(chan struct{}, maxHashing), rest: time.AfterFunc(hashRest, debug.FreeOSMemory)}
	p.rest.Stop() // nothing is left so far
	var salt, key [argonKey]byte
	rand.Read(salt[:argonSalt]) //nolint:errcheck // never fails (crypto/rand)
	rand.Read(key[:])           //nolint:errcheck // never fails (crypto/rand)
	p.decoy = encodeHash(salt[:argonSalt], key[:])
	return p
}

func (p *passwords) take(ctx context.Context) (release func(), err error) {
	select {
	case p.slots <- struct{}{}:
		return p.release, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// release makes the place of a hash free, and sometimes its memory.
func (p *passwords) release() {
	if p.hashed.Add(1)%maxHashing == 0 {
		runtime.GC()
	}
	p.rest.Reset(hashRest)
	<-p.slots
}

// hash gives the text form of a new hash.
func (p *passwords) hash(ctx context.Context, password loom.Secret) (string, error) {
	release, err := p.take(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	salt := make([]byte, argonSalt)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("make a salt: %w", err)
	}
	return encodeHash(salt, argon2.IDKey([]byte(password.Reveal()), salt, argonTime, argonMemory, argonLanes, argonKey)), nil
}

// matches compares a password with a stored hash; an empty hash takes as long and
// never matches.
func (p *passwords) matches(ctx context.Context, hash string, password loom.Secret) (bool, error) {
	release, err := p.take(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	stored := hash
	if stored == "" {
		stored = p.decoy
	}
	salt, key, memory, passes, lanes, err := decodeHash(stored)
	if err != nil {
		return false, err
	}
	got := argon2.IDKey([]byte(password.Reveal()), salt, passes, memory, lanes, uint32(len(key)))
	return subtle.ConstantTimeCompare(got, key) == 1 && hash != "", nil
}

// passwordIs compares with the stored password of a user, who need not exist.
func (a *Accounts) passwordIs(ctx context.Context, tenant loom.TenantID, user loom.UserID, password loom.Secret) (bool, error) {
	hash, err := store.PasswordHash(ctx, a.db, tenant, user)
	if err != nil {
		return false, err
	}
	return a.passwords.matches(ctx, hash, password)
}

func encodeHash(salt, key []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes, b64.EncodeToString(salt), b64.EncodeToString(key))
}

func decodeHash(text string) (salt, key []byte, memory, passes uint32, lanes uint8, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return nil, nil, 0, 0, 0, fmt.Errorf("a stored password hash has an unknown form")
	}
	if _, err = fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &lanes); err != nil {
		return nil, nil, 0, 0, 0, fmt.Errorf("read the parameters of a password hash: %w", err)
	}
	if salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return nil, nil, 0, 0, 0, fmt.Errorf("read the salt of a password hash: %w", err)
	}
	if key, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil {
		return nil, nil, 0, 0, 0, fmt.Errorf("read a password hash: %w", err)
	}
	return salt, key, memory, passes, lanes, nil
}

// checkPassword finds what is wrong with a password that somebody chose for a user of a
// tenant.
func checkPassword(field string, password loom.Secret, user loom.UserID, tenant string) []loom.FieldError {
	n := utf8.RuneCountInString(password.Reveal())
	if n < minPassword || n > maxPassword {
		return []loom.FieldError{{Field: field, Message: fmt.Sprintf("A password has %d to %d characters; this one has %d.", minPassword, maxPassword, n)}}
	}
	if why := whyWeak(password.Reveal(), string(user), tenant); why != "" {
		return []loom.FieldError{{Field: field, Message: why}}
	}
	return nil
}

// makePassword makes up a password of 100 random bits in groups that are easily
// copied by hand.
func makePassword() loom.Secret {
	const letters = "abcdefghijkmnpqrstuvwxyz23456789" // 32, without those that look alike
	var b [20]byte
	rand.Read(b[:]) //nolint:errcheck // never fails (crypto/rand)
	var text strings.Builder
	for i, c := range b {
		if i > 0 && i%5 == 0 {
			text.WriteByte('-')
		}
		text.WriteByte(letters[c&31])
	}
	return loom.NewSecret(text.String())
}

// newSecret makes 32 random bytes as 43 characters of base64url.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:]) //nolint:errcheck // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// hashOf is how cookies and tokens are stored; nil for none. They are random, so
// a plain hash is enough.
func hashOf(s loom.Secret) []byte {
	if s.IsZero() {
		return nil
	}
	sum := sha256.Sum256([]byte(s.Reveal()))
	return sum[:]
}

func itoa(n int) string { return strconv.Itoa(n) }
