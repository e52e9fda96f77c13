package conformance_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"loom/provisioner/conformance"
)

// cloud is one that a directory stands for: a file per machine, and a file per
// fault with the number that is left of it. Several processes may use it.
type cloud string

type machine struct {
	ID, Key, Name string
	// Pending and Lagging are how many looks it takes until it runs, and is seen.
	Pending, Lagging int
}

// Answers of the cloud.
var (
	errRefused   = errors.New("credentials refused")
	errThrottled = errors.New("too many calls")
	errLost      = errors.New("connection lost")
	errNotFound  = errors.New("no such machine")
)

const rightToken = "t0ken-that-is-right"

// locked runs do while nobody else uses the cloud.
func (c cloud) locked(do func() error) error {
	file, err := os.OpenFile(filepath.Join(string(c), ".lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return do()
}

func (c cloud) faultFile(f conformance.Fault) string {
	return filepath.Join(string(c), "fault-"+string(f))
}

func (c cloud) left(f conformance.Fault) int {
	text, err := os.ReadFile(c.faultFile(f))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(string(text))
	return n
}

func (c cloud) set(f conformance.Fault, n int) error {
	if n == 0 {
		if err := os.Remove(c.faultFile(f)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(c.faultFile(f), []byte(strconv.Itoa(n)), 0o666)
}

// spend takes one of a fault and reports whether there was one.
func (c cloud) spend(f conformance.Fault) bool {
	n := c.left(f)
	return n > 0 && c.set(f, n-1) == nil
}

// arrange sets a fault; ending one ends it for the machines that have it too.
func (c cloud) arrange(f conformance.Fault, n int) error {
	return c.locked(func() error {
		if err := c.set(f, n); err != nil || n > 0 {
			return err
		}
		for _, m := range c.all() {
			switch f {
			case conformance.Pending:
				m.Pending = 0
			case conformance.Lagging:
				m.Lagging = 0
			}
			if err := c.store(m); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c cloud) all() []machine {
	files, _ := filepath.Glob(filepath.Join(string(c), "m-*.json"))
	var all []machine
	for _, file := range files {
		var m machine
		if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &m) == nil {
			all = append(all, m)
		}
	}
	return all
}

func (c cloud) store(m machine) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	// A plugin may be killed at any moment: a machine is there whole or as before.
	part := filepath.Join(string(c), ".part-"+m.ID)
	if err := os.WriteFile(part, data, 0o666); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(string(c), m.ID+".json"))
}

// call is one call of the API.
func (c cloud) call(token string, do func() error) error {
	return c.locked(func() error {
		switch {
		case token != rightToken:
			return errRefused
		case c.spend(conformance.Throttled):
			return errThrottled
		}
		return do()
	})
}

// create makes a machine; the same key gives the same one, as clouds with client
// tokens do, unless token is false.
func (c cloud) create(token, key, name string, once bool) (made machine, err error) {
	err = c.call(token, func() error {
		for _, m := range c.all() {
			if once && m.Key == key {
				made = m
				return nil
			}
		}
		made = machine{ID: "m-" + strings.ReplaceAll(strconv.FormatInt(int64(len(c.all())), 10)+"-"+key+"-"+strconv.Itoa(os.Getpid()), "/", ""), Key: key, Name: name,
			Pending: c.left(conformance.Pending), Lagging: c.left(conformance.Lagging)}
		if err := c.store(made); err != nil {
			return err
		}
		if c.spend(conformance.LostAnswer) {
			return errLost
		}
		return nil
	})
	return made, err
}

// look returns a machine and whether it runs.
func (c cloud) look(token, id string) (runs bool, err error) {
	err = c.call(token, func() error {
		for _, m := range c.all() {
			if m.ID != id {
				continue
			}
			if m.Lagging > 0 {
				m.Lagging--
				return errors.Join(c.store(m), errNotFound)
			}
			if m.Pending > 0 {
				m.Pending--
				return c.store(m)
			}
			runs = true
			return nil
		}
		return errNotFound
	})
	return runs, err
}

func (c cloud) find(token, key string) (id string, err error) {
	err = c.call(token, func() error {
		for _, m := range c.all() {
			if m.Key == key {
				id = m.ID
			}
		}
		return nil
	})
	return id, err
}

func (c cloud) remove(token, id string) error {
	return c.call(token, func() error {
		if strings.ContainsAny(id, "/") {
			return errNotFound
		}
		err := os.Remove(filepath.Join(string(c), id+".json"))
		if errors.Is(err, os.ErrNotExist) {
			return errNotFound
		}
		return err
	})
}

// machines lists all by key, as a target does.
func (c cloud) machines() (map[string][]string, error) {
	found := map[string][]string{}
	err := c.locked(func() error {
		for _, m := range c.all() {
			found[m.Key] = append(found[m.Key], m.ID)
		}
		return nil
	})
	return found, err
}
