package local

import (
	"slices"
	"testing"
)

func TestBuildEnvironment(t *testing.T) {
	t.Parallel()
	env := buildEnvironment([]string{"LOOM_SECRET_KEY=planted", "LOOM_DATABASE_URL=planted", "PGPASSWORD=planted", "HOME=/planted", "LD_PRELOAD=planted", "http_proxy=http://p", "NO_PROXY=x"})
	for _, v := range env {
		if len(v) > 7 && v[len(v)-7:] == "planted" {
			t.Errorf("the scripts see %s", v)
		}
	}
	for _, kept := range []string{"http_proxy=http://p", "NO_PROXY=x", "HOME=/root"} {
		if !slices.Contains(env, kept) {
			t.Errorf("%s is missing from %v", kept, env)
		}
	}
}
