package wiring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"loom/app/secret"
)

// KeyFile is where the data directory keeps the sealing keys.
const KeyFile = "secret.key"

// keys returns the sealing keys: those of the configuration, else those of the
// data directory, made at first use and followed when they change.
func (e *Environment) keys() (*secret.Ring, error) {
	if text := e.Values.Text("LOOM_SECRET_KEY"); text != "" {
		ring, err := secret.ParseKeys(text)
		if err != nil {
			return nil, fmt.Errorf("LOOM_SECRET_KEY: %w", err)
		}
		return ring, nil
	}
	path, err := e.KeyPath()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		// Another process may be quicker.
		if err := WriteNew(path, []byte(secret.GenerateKey()+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("sealing key: %w", err)
		}
	}
	ring, err := secret.OpenFile(path, func(err error) {
		e.Log.Error("cannot reread sealing keys, keeping the known ones", "error", err.Error())
	})
	if err != nil {
		return nil, fmt.Errorf("sealing key: %w", err)
	}
	return ring, nil
}

// KeyPath is the file of the sealing keys.
func (e *Environment) KeyPath() (string, error) {
	dir, err := e.DataDir()
	return filepath.Join(dir, KeyFile), err
}
