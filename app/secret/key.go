package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

// KeyID names a sealing key and gives nothing of it away.
type KeyID [idSize]byte

// String is the id in hexadecimal digits, as tables and people see it.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// ParseKeyID reads what String gives; ok is false for anything else.
func ParseKeyID(text string) (id KeyID, ok bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != idSize {
		return id, false
	}
	return KeyID(raw), true
}

// HeadSize is how many bytes of a sealed value KeyOf needs.
const HeadSize = 1 + idSize

// KeyOf names the key that sealed a value, by its first HeadSize bytes; ok is
// false for what is no sealed value.
func KeyOf(sealed []byte) (id KeyID, ok bool) {
	if len(sealed) < HeadSize || sealed[0] != format {
		return id, false
	}
	return KeyID(sealed[1:HeadSize]), true
}

// First names the key that seals.
func (r *Ring) First() KeyID { return r.fresh().first }

// IDs names the keys, the one that seals first.
func (r *Ring) IDs() []KeyID { return append([]KeyID{}, r.fresh().order...) }

// MAC is HMAC-SHA256 over the parts, one behind the other, with a key derived
// from the named sealing key. ErrUnknownKey when that is not in the ring.
func (r *Ring) MAC(id KeyID, parts ...[]byte) ([]byte, error) {
	key, ok := r.find(id)
	if !ok {
		return nil, ErrUnknownKey
	}
	h := hmac.New(sha256.New, key.mac)
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil), nil
}

// keyFile is the file that a ring follows.
type keyFile struct {
	path string
	mu   sync.Mutex
	info fs.FileInfo // of what was read last
	// warn is told, once per change of the file, why new keys were not taken.
	warn func(error)
}

// OpenFile makes a ring of the keys in a file, in the form of ParseKeys. It
// follows the file: what is sealed after the file was replaced is sealed with its
// first key, and a value sealed with a key that is not known makes it look again.
// warn hears of a file that became unreadable; the keys known so far then go on.
func OpenFile(path string, warn func(error)) (*Ring, error) {
	r := &Ring{file: &keyFile{path: path, warn: warn}}
	set, info, err := readKeys(path)
	if err != nil {
		return nil, err
	}
	r.keys.Store(set)
	r.file.info = info
	return r, nil
}

func readKeys(path string) (*keySet, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	// Of the open file: another may have taken its name meanwhile.
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size() > maxKeyFile {
		return nil, info, fmt.Errorf("%s is too large for a file of keys", path)
	}
	text := make([]byte, info.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, info, fmt.Errorf("read the sealing keys: %w", err)
	}
	set, err := parse(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, info, fmt.Errorf("%s: %w", path, err)
	}
	return set, info, nil
}

// maxKeyFile bounds a file of keys, in bytes: thousands of keys.
const maxKeyFile = 1 << 20

// fresh gives the keys of now.
func (r *Ring) fresh() *keySet {
	if r.file != nil {
		r.file.follow(&r.keys)
	}
	return r.keys.Load()
}

// find looks a key up, in the file too when it is not known yet.
func (r *Ring) find(id KeyID) (sealingKey, bool) {
	key, ok := r.keys.Load().keys[id]
	if !ok {
		key, ok = r.fresh().keys[id]
	}
	return key, ok
}

// follow reads the file again when it is another one than before.
func (f *keyFile) follow(keys interface{ Store(*keySet) }) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err == nil && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size() {
		return
	}
	if errors.Is(err, fs.ErrNotExist) {
		return // the data directory is being removed, or it is on its way back
	}
	set, read, err := readKeys(f.path)
	if read != nil {
		f.info = read
	}
	if err != nil {
		if f.warn != nil {
			f.warn(err)
		}
		return
	}
	keys.Store(set)
}

// Settle is how long to wait, after the first key changed, until nobody is about
// to store what he sealed with the former one.
const Settle = 2 * time.Second
