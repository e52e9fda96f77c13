package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dialers are the only files that may make connections of their own, with why.
var dialers = map[string]string{
	"provisioner/provider/cloud/client.go":   "the clients of all clouds, with the reach of the task",
	"provisioner/remote/jump.go":             "SSH and checks, with the reach of the target",
	"provisioner/health/request.go":          "checks by HTTP, over connections of remote.Dialer",
	"app/idp/idp.go":                         "identity providers, with the reach of LOOM_IDENTITY_NETWORKS",
	"app/hook/delivery.go":                   "hooks, with the reach of hooks",
	"provisioner/provider/google/key.go":     "tokens, by the client of the cloud",
	"provisioner/provider/local/provider.go": "the machine that this host has just booted",
	"provisioner/simcloud/http.go":           "the machines of load tests, which the operator starts",
	"app/cli/catalog.go":                     "the server that the person at the command line names",
	"app/lab/bench_pages.go":                 "the benchmark's own Loom",
	"app/lab/bench_instance.go":              "the benchmark's own Loom",
	"app/lab/bench_local.go":                 "the benchmark's own machines",
}

// makes are the ways of package net, net/http and crypto/ssh to get a connection.
var makes = map[string][]string{
	"net/http":                {"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Post", "PostForm", "Head"},
	"net":                     {"Dialer", "Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP"},
	"crypto/tls":              {"Dial", "DialWithDialer", "Dialer"},
	"golang.org/x/crypto/ssh": {"Dial"},
}

// TestDialersImport: nobody connects to anywhere but by the dialers that keep to the reach of a
// tenant (docs/decisions/0055-what-loom-dials.md).
func TestDialersImport(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, root := range []string{"app", "provisioner", "jobs", "planner", "solver"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, d fs.DirEntry, err error) error {
			name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "provisioner/fakecloud/") || strings.HasPrefix(name, "app/testkit/") || strings.HasPrefix(name, "provisioner/remote/sshtest/") {
				return err
			}
			for _, what := range connections(t, path) {
				used[name] = true
				if dialers[name] == "" {
					t.Errorf("%s uses %s; connect with cloud.Session.Client or remote.Dialer, which keep to the reach of the task", name, what)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range dialers {
		if !used[name] {
			t.Errorf("%s connects to nothing any more; take it off the list", name)
		}
	}
}

// connections lists what a file uses of makes. A type alone, such as *http.Client, makes
// none.
func connections(t *testing.T, path string) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, spec := range file.Imports {
		from := strings.Trim(spec.Path.Value, `"`)
		if makes[from] == nil {
			continue
		}
		name := from[strings.LastIndexByte(from, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = from
	}
	types := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr:
			types[n.X] = true
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if from := names[nameOf(pkg, ok)]; from != "" && !types[n] && slices.Contains(makes[from], n.Sel.Name) {
				found = append(found, from+"."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}

func nameOf(id *ast.Ident, ok bool) string {
	if !ok {
		return ""
	}
	return id.Name
}
