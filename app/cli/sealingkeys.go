package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"loom/app/secret"
)

// keyFile is where the data directory keeps the sealing keys.
const keyFile = "secret.key"

// keys gives the sealing keys: those of the configuration, else those of the
// data directory, made at first use and followed when they change.
func (e *environment) keys() (*secret.Ring, error) {
	if text := e.values.Text("LOOM_SECRET_KEY"); text != "" {
		ring, err := secret.ParseKeys(text)
		if err != nil {
			return nil, fmt.Errorf("LOOM_SECRET_KEY: %w", err)
		}
		return ring, nil
	}
	path, err := e.keyPath()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		// Another process may be quicker.
		if err := writeNew(path, []byte(secret.GenerateKey()+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("sealing key: %w", err)
		}
	}
	ring, err := secret.OpenFile(path, func(err error) {
		e.log.Error("the sealing keys cannot be read again; those known go on", "error", err.Error())
	})
	if err != nil {
		return nil, fmt.Errorf("sealing key: %w", err)
	}
	return ring, nil
}

func (e *environment) keyPath() (string, error) {
	dir, err := e.dataDir()
	return filepath.Join(dir, keyFile), err
}
