package shell

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

func exampleSpec(script, args string) *loom.TaskSpec {
	return &loom.TaskSpec{
		Ref:    loom.TaskRef{Operation: loom.OperationRef{Cluster: 12, Number: 1}, Number: 34},
		Action: loom.ActionStart, Node: "n1", NodeNumber: 1000, Hostname: "shop12-1000.example.net",
		Addresses: map[string]string{loom.AccessV4: "203.0.113.21", loom.BindV4: "10.20.0.21"},
		Services:  []string{"base", "web app"}, Automators: []string{"shell"},
		Provider: loom.Provider{Type: "local", Fields: map[string]any{"api_password": "s3cret-of-api"}},
		Config:   map[string]any{"web app": map[string]any{"port": "8080", "limit": 1.50, "on": true, "none": nil, "text": "a\tb\nc\\d"}},
		Nodes:    map[loom.NodeID]loom.NodeProperties{"n1": {Hostname: "shop12-1000.example.net"}},
		Results:  map[string]any{"ssh-auth": map[string]any{"user": "root"}, "web app": map[string]any{"old": "1"}},
		Service:  &loom.TaskService{Name: "web app", Action: loom.ServiceAction{Type: "shell", Fields: map[string]string{"script": script, "args": args}}},
	}
}

// resources lays out a tenant's files.
func resources(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range scripts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o755)
		if strings.HasSuffix(name, ".plain") {
			mode = 0o644
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func connect(t *testing.T, s *sshtest.Server, user string) *remote.Conn {
	t.Helper()
	conn, err := remote.Dial(context.Background(), remote.Target{Reach: loom.Anywhere(), Address: s.Address, Port: s.Port, User: user,
		Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}, HostKeys: s.HostKeys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestShell(t *testing.T) {
	t.Parallel()
	files := resources(t, map[string]string{
		"scripts/env.sh":     "#!/bin/sh\nid -u; pwd; echo \"$LOOM_TASK_NAME $LOOM_TASK_ID $LOOM_CLUSTER_ID $LOOM_HOSTNAME $LOOM_SERVICE $LOOM_IP_ACCESS_V4 $LOOM_IP_BIND_V4\"\nstat -c %a \"$LOOM_TASK_JSON\" \"$LOOM_TASK_PATHS\" \"$LOOM_RESULT_FILE\"\n",
		"scripts/args.sh":    "#!/bin/sh\nfor a; do echo \"<$a>\"; done\n",
		"scripts/lookup.sh":  "#!/bin/sh -e\ncoopr_lookup_key \"$1\"\n",
		"scripts/bash.sh":    "#!/usr/bin/env bash\na=(x y)\necho \"${a[1]} $(loom_lookup_key '^/taskName$') ${BASH_VERSION:+bash}\"\n",
		"scripts/exit.sh":    "#!/bin/sh\necho before\nexit 7\necho after\n",
		"scripts/bare":       "echo bare $1\n",
		"scripts/bare.plain": "echo bare\n",
		"scripts/awk.plain":  "#!/usr/bin/awk -f\nBEGIN { print \"awk ran\" }\n",
		"scripts/result.sh":  "#!/bin/sh\necho 'port=80=81' >>\"$LOOM_RESULT_FILE\"\necho 'garbage' >>\"$LOOM_RESULT_FILE\"\nexit 3\n",
		"scripts/secret.sh":  "#!/bin/sh\ncat \"$LOOM_TASK_JSON\"\n",
		"scripts/self.sh":    "#!/bin/sh\necho \"$0 $(dirname \"$0\") $#:$2\"\n",
		"scripts/self.bash":  "#!/usr/bin/env -S bash -eu\necho \"$0 ${BASH_SOURCE[0]} $-\"; shift; echo \"$* $(loom_lookup_key '^/taskName$')\"\n",
		"scripts/self.plain": "#! /bin/sh -e -\necho \"$0 $*\"\nloom_lookup_key nowhere 2>/dev/null\necho not reached\n",
		"scripts/typo.sh":    "#!/bin/sh\n\nconfigre\n",
		"archives/site/a/b":  "in the archive",
	})
	for _, user := range []string{"root", sshtest.SudoUser} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			s := sshtest.Start(t, sshtest.Options{Isolated: true})
			conn := connect(t, s, user)
			ctx := context.Background()
			for i, want := range []string{"uploaded", "there already"} {
				sink := &sshtest.Record{}
				if got, err := New().Bootstrap(ctx, exampleSpec("", ""), conn, files, sink); err != nil || got.Status != 0 || !strings.Contains(sink.Text(), want) {
					t.Fatalf("bootstrap %d: %+v, %v, %s", i, got, err, sink.Text())
				}
			}
			cases := []struct {
				name, script, args string
				status             int
				stdout, message    string
			}{
				{"environment", "env.sh", "", 0, "0\n/var/cache/loom/shell/scripts\nSTART 00000012-001-034 00000012 shop12-1000.example.net web app 203.0.113.21 10.20.0.21\n600\n600\n600\n", ""},
				{"quotes", "args.sh", `https://chef.example:443 "role[base]" 'a b' \"`, 0, "<https://chef.example:443>\n<role[base]>\n<a b>\n<\">\n", ""},
				{"variables", "args.sh", `$LOOM_IP_BIND_V4 "$LOOM_SERVICE" $((1+1))`, 0, "<10.20.0.21>\n<web app>\n<2>\n", ""},
				{"patterns", "args.sh", `ex*.sh ../arch*/site/a/b`, 0, "<exit.sh>\n<../archives/site/a/b>\n", ""},
				{"absolute path", "/usr/bin/env", `sh -c 'echo one && echo two | tr a-z A-Z'`, 0, "one\nTWO\n", ""},
				{"command", "echo", "hello", 0, "hello\n", ""},
				{"exit", "exit.sh", "", 1, "before\n", "exit.sh exited with 7"},
				{"bash script", "bash.sh", "", 0, "y START bash\n", ""},
				{"no first line", "bare", "1", 0, "bare 1\n", ""},
				{"own path", "self.sh", "a 'b c'", 0, "/var/cache/loom/shell/scripts/self.sh /var/cache/loom/shell/scripts 2:b c\n", ""},
				{"own path in bash", "self.bash", "a 'b c' d", 0, "/var/cache/loom/shell/scripts/self.bash /var/cache/loom/shell/scripts/self.bash ehuBc\nb c d START\n", ""},
				{"own path with an end of options", "self.plain", "-x y", 1, "/var/cache/loom/shell/scripts/self.plain -x y\n", "self.plain exited with 1"},
				{"own path by path", "../scripts/self.sh", "", 0, "/var/cache/loom/shell/scripts/../scripts/self.sh /var/cache/loom/shell/scripts/../scripts 0:\n", ""},
				{"typo", "typo.sh", "", 1, "", "typo.sh exited with 127"},
				{"neither", "bare.plain", "", 1, "", "bare.plain exited with 126"},
				{"other interpreter", "awk.plain", "", 0, "awk ran\n", ""},
				{"missing", "nowhere.sh", "", 1, "", "nowhere.sh exited with 127"},
				{"lookup one", "lookup.sh", "'web app/port$'", 0, "8080\n", ""},
				{"lookup list", "lookup.sh", "config/services", 0, "base \"web app\"\n", ""},
				{"shipped", "json_substitution_example.sh", "'^/config/hostname$'", 0, "^/config/hostname$ = shop12-1000.example.net\n", ""},
				{"shipped, wrong use", "coopr_service_manager.sh", "x explode", 1, "", "coopr_service_manager.sh exited with 2"},
				{"unbalanced quote", "echo", "it's", 1, "", "echo exited with 2"},
				{"final: wrong use", "/bin/sh", "-c 'exit 64'", 1, "", "/bin/sh exited with 64"},
				{"final: wrong config", "/bin/sh", "-c 'exit 78'", 1, "", "/bin/sh exited with 78"},
			}
			for _, c := range cases {
				sink := &sshtest.Record{}
				got, err := New().Run(ctx, exampleSpec(c.script, c.args), conn, files, sink)
				want := c.message
				if cause := remote.LastLine(got.Stderr); cause != "" && c.status != 0 {
					want += ": " + cause
				}
				if err != nil || got.Status != c.status || got.Stdout != c.stdout || got.Message != want {
					t.Errorf("%s: %+v, %v", c.name, got, err)
				}
				if c.name == "typo" && !strings.Contains(got.Stderr, "/scripts/typo.sh: 3: ") {
					t.Errorf("%s: %q", c.name, got.Stderr)
				}
				if c.name == "own path in bash" && got.Stderr != "" { // such as of a bashrc
					t.Errorf("%s: %q", c.name, got.Stderr)
				}
				if final := got.Retryable != nil && !*got.Retryable; final != strings.HasPrefix(c.name, "final") {
					t.Errorf("%s: final is %v", c.name, final)
				}
				if c.name == "neither" && !strings.Contains(got.Stderr, "script must be executable or start with #!") {
					t.Errorf("%s: %q", c.name, got.Stderr)
				}
			}
			sink := &sshtest.Record{}
			got, err := New().Run(ctx, exampleSpec("result.sh", ""), conn, files, sink)
			facts, _ := got.Result["web app"].(map[string]any)
			if err != nil || got.Status != 1 || facts["port"] != "80=81" || facts["old"] != "1" || len(facts) != 2 || !strings.Contains(sink.Text(), "not key=value") {
				t.Errorf("result: %+v, %v, %s", got, err, sink.Text())
			}
			left, _ := filepath.Glob(filepath.Join(s.Dir, "cache/loom/0*"))
			if len(left) > 0 {
				t.Errorf("left on the machine: %v", left)
			}
			if to, err := os.Readlink(filepath.Join(s.Dir, "cache/coopr")); err != nil || to != "loom" {
				t.Errorf("link: %q, %v", to, err)
			}
			spec := exampleSpec("secret.sh", "")
			got, _ = New().Run(ctx, spec, conn, files, &sshtest.Record{})
			if strings.Contains(got.Stdout, "s3cret-of-api") || strings.Contains(got.Stdout, "ssh-auth") || !strings.Contains(got.Stdout, "shop12") {
				t.Errorf("credentials on the machine: %s", got.Stdout)
			}
			spec.Service.Action.Fields["expose_credentials"] = "true"
			if got, _ = New().Run(ctx, spec, conn, files, sink); strings.Contains(got.Stdout, "s3cret-of-api") || !strings.Contains(sink.Text(), "does not allow it") {
				t.Errorf("credentials though the provider does not allow it: %s", got.Stdout)
			}
			spec.Provider.Fields["expose_credentials"] = "on"
			if got, _ = New().Run(ctx, spec, conn, files, &sshtest.Record{}); !strings.Contains(got.Stdout, "s3cret-of-api") {
				t.Errorf("no credentials though wanted: %s", got.Stdout)
			}
			checks(t, s, conn, files)
			spec = exampleSpec("sleep", "100")
			spec.Service.Action.Fields["timeout_s"] = "0.05"
			if got, err = New().Run(ctx, spec, conn, files, &sshtest.Record{}); err != nil || got.Status != -1 || !strings.Contains(got.Message, "timed out") {
				t.Errorf("time limit: %+v, %v", got, err)
			}
		})
	}
}

// checks: a check runs as the scripts of actions do, with the settings of the last CONFIGURE
// or START, which hold no credentials and go with the service.
func checks(t *testing.T, s *sshtest.Server, conn *remote.Conn, files string) {
	t.Helper()
	ctx := context.Background()
	spec := exampleSpec("bare", "")
	check := func(command string) remote.Outcome {
		t.Helper()
		out, err := conn.Exec(ctx, remote.Command{Text: New().CheckText(spec, command), Root: true})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := check("lookup.sh 'web app/port$'"); out.Stdout != "8080\n" || out.Code != 0 {
		t.Errorf("a check that reads a setting: %+v", out)
	}
	if out := check("exit.sh"); out.Code != 7 {
		t.Errorf("a check that fails: %+v", out)
	}
	if out := check(`test "$LOOM_SERVICE" = "web app" && echo fine`); out.Stdout != "fine\n" {
		t.Errorf("a check of two commands: %+v", out)
	}
	spec.Config = map[string]any{"web app": map[string]any{"port": "9090"}}
	if got, err := New().Run(ctx, spec, conn, files, &sshtest.Record{}); err != nil || got.Status != 0 {
		t.Fatalf("start again: %+v, %v", got, err)
	}
	if out := check("lookup.sh 'web app/port$'"); out.Stdout != "9090\n" {
		t.Errorf("after another start: %+v", out)
	}
	kept, _ := filepath.Glob(filepath.Join(s.Dir, "cache/loom/settings/*"))
	if len(kept) != 2 {
		t.Errorf("settings on the machine: %v", kept)
	}
	for _, path := range kept {
		text, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(text), "s3cret-of-api") {
			t.Errorf("%s: mode %v, %v, %v, %s", path, info.Mode(), err, statErr, text)
		}
	}
	spec.Action = loom.ActionRemove
	if got, err := New().Run(ctx, spec, conn, files, &sshtest.Record{}); err != nil || got.Status != 0 {
		t.Fatalf("remove: %+v, %v", got, err)
	}
	if kept, _ := filepath.Glob(filepath.Join(s.Dir, "cache/loom/settings/*")); len(kept) > 0 {
		t.Errorf("after remove: %v", kept)
	}
}

func TestShellBadFields(t *testing.T) {
	t.Parallel()
	spec := exampleSpec(" ", "")
	got, err := New().Run(context.Background(), spec, nil, "", &sshtest.Record{})
	if err != nil || got.Status != 1 || !strings.Contains(got.Message, "“script”") || got.Retryable == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	spec = exampleSpec("true", "")
	spec.Service.Action.Fields["timeout_s"] = "soon"
	if got, err = New().Run(context.Background(), spec, nil, "", &sshtest.Record{}); err != nil || !strings.Contains(got.Message, "“timeout_s”") {
		t.Fatalf("%+v, %v", got, err)
	}
	kind := New().Type()
	if errs := kind.Validate(); len(errs) > 0 {
		t.Fatal(errs)
	}
}

func TestShellNotBootstrapped(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	got, err := New().Run(context.Background(), exampleSpec("true", ""), connect(t, s, "root"), "", &sshtest.Record{})
	if err != nil || got.Status != 1 || !strings.Contains(got.Stderr, "was the node bootstrapped?") {
		t.Fatalf("%+v, %v", got, err)
	}
}

// BenchmarkRun measures one action on a kept connection.
func BenchmarkRun(b *testing.B) {
	s := sshtest.Start(b, sshtest.Options{Isolated: true})
	conn, err := remote.Dial(context.Background(), remote.Target{Reach: loom.Anywhere(), Address: s.Address, Port: s.Port, User: "root",
		Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}, HostKeys: s.HostKeys})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	sink := &sshtest.Record{}
	b.Run("bootstrap again", func(b *testing.B) {
		for b.Loop() {
			if got, err := New().Bootstrap(context.Background(), exampleSpec("", ""), conn, "", sink); err != nil || got.Status != 0 {
				b.Fatal(got, err)
			}
		}
	})
	b.Run("action", func(b *testing.B) {
		for b.Loop() {
			if got, err := New().Run(context.Background(), exampleSpec("true", ""), conn, "", sink); err != nil || got.Status != 0 {
				b.Fatal(got, err)
			}
		}
	})
}
