package enginetest

import (
	"errors"
	"testing"
)

// TestRefusals: only what the kernel refuses is a reason to skip.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"private mounts: operation not permitted":                                  "operation not permitted",
		"refused: mount: /sys/fs/cgroup: Permission denied":                        "permission denied",
		"overlay: no such device":                                                  "no such device",
		"refused: mount: unknown filesystem type 'cgroup2'":                        "unknown filesystem type",
		"refused: failed to start daemon: Devices cgroup isn't mounted":            "devices cgroup isn't mounted",
		"exec: \"ip\": executable file not found in $PATH":                         "",
		"refused: failed to load listeners: address already in use":                "",
		"refused: unable to configure the Docker daemon: unknown flag: --iptablez": "",
		"context deadline exceeded":                                                "",
	} {
		if got := refusal(errors.New(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
