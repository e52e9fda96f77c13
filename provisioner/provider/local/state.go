package local

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"loom/app/loom"
)

// state is what is known of a machine, kept in machines/<id>/state.json.
type state struct {
	ID       string        `json:"id"`
	Key      string        `json:"idempotency_key"`
	Node     loom.NodeID   `json:"node"`
	Cluster  string        `json:"cluster"`
	Tenant   loom.TenantID `json:"tenant"`
	Hostname string        `json:"hostname"`
	Address  string        `json:"address"`
	// HostKey is the public half, base64 as in a known_hosts line; the private
	// half is the file host_key beside this one, readable by root only.
	HostKey        string   `json:"host_key"`
	AuthorizedKeys []string `json:"authorized_keys"`
	SSHUser        string   `json:"ssh_user"`
	Limits         limits   `json:"limits"`
	// FirstID is root of the machine on the host, 0 for one made when all shared baseID.
	FirstID int `json:"first_id,omitempty"`
	// Group is the control group below that of the installation; that of a machine made
	// before tenants had groups is its id.
	Group string `json:"group,omitempty"`
	Image string `json:"image"`
	// Flavor as CREATE was asked for it; what of it holds is in Limits.
	Flavor   string `json:"flavor,omitempty"`
	Internet bool   `json:"internet"`
	// PublicOnly keeps a machine with internet from private networks.
	PublicOnly bool      `json:"publicOnly,omitempty"`
	Created    time.Time `json:"created_at"`
	// Booted says that the first boot was completed: files of the first boot
	// (users, hosts) are not written again.
	Booted bool `json:"booted"`
	// Deleting says that removal has begun and must be finished, not undone.
	Deleting bool `json:"deleting"`
	// Stopped, if set, is why the machine was stopped and is not booted again.
	Stopped string `json:"stopped,omitempty"`

	// The first process, identified so that a recycled number is never taken for
	// it: its start in clock ticks since boot, and the id of that boot of the host.
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"`
	BootID    string `json:"boot_id"`
}

func (l *Local) machinesDir() string          { return filepath.Join(l.dataDir, "machines") }
func (l *Local) machineDir(id string) string  { return filepath.Join(l.machinesDir(), id) }
func (l *Local) addressFile(ip string) string { return filepath.Join(l.dataDir, "addresses", ip) }
func (l *Local) instanceFile() string         { return filepath.Join(l.dataDir, "instance.json") }
func (l *Local) hostKeyFile(id string) string { return filepath.Join(l.machineDir(id), "host_key") }
func (l *Local) stateFile(id string) string   { return filepath.Join(l.machineDir(id), "state.json") }
func (l *Local) bridgeName(index int) string  { return fmt.Sprintf("lm%sb%d", l.hash, index) }
func (l *Local) tableName() string            { return "loom_" + l.hash }
func (l *Local) linkPattern() (prefix string) { return "lm" + l.hash }

// readState returns the state of a machine; isGone(err) when there is none.
func (l *Local) readState(id string) (*state, error) {
	// The id comes from a node's results; it must not lead anywhere else.
	if id == "" || id != filepath.Base(id) || strings.HasPrefix(id, ".") {
		return nil, fmt.Errorf("machine %q: %w", id, os.ErrNotExist)
	}
	data, err := os.ReadFile(l.stateFile(id))
	if err != nil {
		return nil, err
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("read state of machine %s: %w", id, err)
	}
	return &s, nil
}

func (l *Local) writeState(s *state) error {
	return writeJSON(l.stateFile(s.ID), s)
}

// readStates lists the machines, sorted by id. Directories without a state are
// the half-made ones; they are returned as ids.
func (l *Local) readStates() (states []*state, leftovers []string, err error) {
	entries, err := os.ReadDir(l.machinesDir())
	if isGone(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		s, err := l.readState(e.Name())
		switch {
		case isGone(err):
			leftovers = append(leftovers, e.Name())
		case err != nil:
			return nil, nil, err
		default:
			states = append(states, s)
		}
	}
	sort.Slice(states, func(i, j int) bool { return states[i].ID < states[j].ID })
	return states, leftovers, nil
}

// find returns the machine with that id or, with an empty or unknown id, the one
// made for the key; nil when there is none.
func (l *Local) find(id, key string) (*state, error) {
	for _, id := range []string{id, machineID(key)} {
		s, err := l.readState(id)
		if err == nil && (key == "" || s.Key == key) {
			return s, nil
		}
		if err != nil && !isGone(err) {
			return nil, err
		}
	}
	return nil, nil
}

// newHostKey makes a machine's host key: the private half as OpenSSH reads it
// and the public half in base64.
func newHostKey() (private []byte, public string, err error) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", err
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, "", err
	}
	sshPub, err := ssh.NewPublicKey(pub)
	if err != nil {
		return nil, "", err
	}
	return pem.EncodeToMemory(block), base64.StdEncoding.EncodeToString(sshPub.Marshal()), nil
}

// writeJSON replaces a file as a whole and on disk, mode 0600: a reader, also
// after a crash of the host, sees the old or the new content.
func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// lockFile takes an exclusive lock on a file, creating it; closing the file
// releases the lock. It polls, so that a waiting caller can be cancelled.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && sameFile(f, path) {
			return f, nil
		}
		f.Close()
		switch {
		case err == nil: // the former holder removed the file in between
			continue
		case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		default:
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

func sameFile(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(open, named)
}

// lockInstance guards instance.json, the bridges and the packet filter table,
// between goroutines and between processes.
func (l *Local) lockInstance(ctx context.Context) (unlock func(), err error) {
	l.mu.Lock()
	f, err := lockFile(ctx, filepath.Join(l.dataDir, "instance.lock"))
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	return func() { f.Close(); l.mu.Unlock() }, nil
}

// lockMachine lets one goroutine of one process work on a machine at a time.
// Unlocking removes the file, so that nothing is left of a deleted machine.
func (l *Local) lockMachine(ctx context.Context, id string) (unlock func(), err error) {
	path := filepath.Join(l.dataDir, "locks", id)
	f, err := lockFile(ctx, path)
	if err != nil {
		return nil, err
	}
	return func() { os.Remove(path); f.Close() }, nil
}
