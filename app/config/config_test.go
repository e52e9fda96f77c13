package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loom/app/testkit/golden"
)

func TestPrecedence(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "addr")
	if err := os.WriteFile(file, []byte("file:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		flags map[string]string
		env   []string
		want  string
	}{
		{"default", nil, nil, "127.0.0.1:8080"},
		{"file", nil, []string{"LOOM_LISTEN_ADDR_FILE=" + file}, "file:1"},
		{"environment over file", nil, []string{"LOOM_LISTEN_ADDR_FILE=" + file, "LOOM_LISTEN_ADDR=env:1"}, "env:1"},
		{"flag over all", map[string]string{"listen-addr": "flag:1"}, []string{"LOOM_LISTEN_ADDR=env:1"}, "flag:1"},
		{"PORT", nil, []string{"PORT=5000"}, "0.0.0.0:5000"},
		{"PORT loses to the own variable", nil, []string{"PORT=5000", "LOOM_LISTEN_ADDR=env:1"}, "env:1"},
	} {
		v, err := Load(c.flags, c.env)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := v.Text("LOOM_LISTEN_ADDR"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		flags map[string]string
		env   []string
		want  string
	}{
		{"unknown variable", nil, []string{"LOOM_LISTENADDR=x"}, "LOOM_LISTEN_ADDR"},
		{"not a number", nil, []string{"LOOM_PROVISIONER_CAPACITY=many"}, "whole number"},
		{"not a duration", map[string]string{"drain-timeout": "soon"}, nil, "duration"},
	} {
		_, err := Load(c.flags, c.env)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", c.name, err, c.want)
		}
	}
}

func TestForeignVariablesPass(t *testing.T) {
	t.Parallel()
	if _, err := Load(nil, []string{"LOOM_TOKEN=x", "LOOM_TEST_ANY=1", "HOME=/"}); err != nil {
		t.Error(err)
	}
}

func TestPrintHidesSecrets(t *testing.T) {
	t.Parallel()
	v, err := Load(nil, []string{"LOOM_SECRET_KEY=hunter2hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	if out := v.Print(); strings.Contains(out, "hunter2") || !strings.Contains(out, "[redacted]") {
		t.Errorf("printed:\n%s", out)
	}
	for url, shown := range map[string]bool{"s3://loom?region=x": true, "s3://me:hunter2@loom": false, "s3://loom?endpoint=https://me:hunter2@s3.example.org": false,
		"s3://loom?endpoint=https%3A%2F%2Fme:hunter2%40s3.example.org": false} {
		v, err := Load(nil, []string{"LOOM_RESOURCES_URL=" + url})
		if err != nil {
			t.Fatal(err)
		}
		if out := v.Print(); strings.Contains(out, "hunter2") || strings.Contains(out, url) != shown {
			t.Errorf("printed:\n%s", out)
		}
	}
}

func TestDocumentIsUpToDate(t *testing.T) {
	t.Parallel()
	golden.File(t, "../../docs/configuration.md", Markdown())
}
