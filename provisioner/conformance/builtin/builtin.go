// Package builtin says how the built-in types that need no account anywhere are
// held to package conformance: the mock twins, machines of this host, and the
// shell automator. Cloud providers have their own targets beside their emulators.
package builtin

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/automator/mock"
	"loom/provisioner/automator/shell"
	"loom/provisioner/conformance"
	"loom/provisioner/provider/local"
	mockprovider "loom/provisioner/provider/mock"
	"loom/provisioner/remote"
)

// task is the task of the nth machine; keys differ between processes.
func task(n int, providerType string, fields map[string]any) *loom.TaskSpec {
	node := loom.NodeID(fmt.Sprintf("conformance-%d-%d", os.Getpid(), n))
	return &loom.TaskSpec{
		Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: 1, Number: 1}, Number: n + 1}, Tenant: "conformance", Attempt: 1,
		IdempotencyKey: loom.IdempotencyKey(node, 0), Node: node, NodeNumber: 1000 + n, Hostname: fmt.Sprintf("conformance1-%d.local", 1000+n),
		Provider: loom.Provider{Base: loom.Base{Name: "conformance"}, Type: providerType, Fields: fields}, Config: map[string]any{}, Results: map[string]any{}, Reach: loom.Anywhere(),
	}
}

func service(typeName string, action loom.TaskAction, fields map[string]string) *loom.TaskSpec {
	s := task(1, "conformance", map[string]any{"api_password": providerSecret})
	s.Action, s.Sensitive = action, []string{providerSecret}
	s.Service = &loom.TaskService{Name: "conformance", Action: loom.ServiceAction{Type: typeName, Fields: fields}}
	return s
}

// providerSecret is what no automator may say.
const providerSecret = "planted-secret-of-the-provider"

// Mock lets the fields of the mock provider make its cloud misbehave.
func Mock() conformance.ProviderTarget {
	fields := map[string]any{}
	return conformance.ProviderTarget{
		Provider: mockprovider.New(),
		Spec:     func(n int) *loom.TaskSpec { return task(n, "mock", fields) },
		Arrange: func(_ context.Context, fault conformance.Fault, n int) error {
			switch fault {
			case conformance.LostAnswer:
				fields["lie_percent"] = min(n, 1) * 100
			case conformance.Pending:
				fields["boot_ms"] = min(n*20, 1e8)
			case conformance.Throttled, conformance.Lagging:
				return conformance.Unknown()
			}
			return nil
		},
	}
}

// MockAutomator is its twin.
func MockAutomator() conformance.AutomatorTarget {
	change := func(name, value string) func(*loom.TaskSpec) {
		return func(s *loom.TaskSpec) { s.Service.Action.Fields = map[string]string{name: value} }
	}
	return conformance.AutomatorTarget{
		Automator: mock.New(), Actions: loom.ClusterCreate.Steps()[3:], Secrets: []string{providerSecret},
		Spec:   func(action loom.TaskAction) *loom.TaskSpec { return service("mock", action, map[string]string{}) },
		Broken: change("fail_percent", "100"), Slow: change("delay_ms", "100000000"),
	}
}

// Local makes real machines. What they leave is the caller's to purge.
func Local(machines *local.Local) (conformance.ProviderTarget, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return conformance.ProviderTarget{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return conformance.ProviderTarget{}, err
	}
	authorized, err := ssh.NewPublicKey(public)
	if err != nil {
		return conformance.ProviderTarget{}, err
	}
	key := string(pem.EncodeToMemory(block))
	return conformance.ProviderTarget{
		Provider: machines, Secrets: []string{key},
		Spec: func(n int) *loom.TaskSpec {
			s := task(n, local.TypeName, map[string]any{})
			s.Image, s.PublicKey, s.PrivateKey = local.DefaultImage, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(authorized))), loom.NewSecret(key)
			return s
		},
	}, nil
}

const script = "#!/bin/sh\necho \"$LOOM_SERVICE $1\"\ncase $1 in fail) exit 3 ;; wait) sleep 300 ;; esac\n"

// Shell works on a real machine. files is an empty directory, into which it puts
// the scripts.
func Shell(conn *remote.Conn, files string) (conformance.AutomatorTarget, error) {
	if err := os.MkdirAll(filepath.Join(files, "scripts"), 0o755); err != nil {
		return conformance.AutomatorTarget{}, err
	}
	if err := os.WriteFile(filepath.Join(files, "scripts", "conformance.sh"), []byte(script), 0o755); err != nil {
		return conformance.AutomatorTarget{}, err
	}
	do := func(what string) map[string]string {
		return map[string]string{"script": "conformance.sh", "args": what}
	}
	change := func(what string) func(*loom.TaskSpec) {
		return func(s *loom.TaskSpec) { s.Service.Action.Fields = do(what) }
	}
	return conformance.AutomatorTarget{Automator: shell.New(), Conn: conn, Files: files, Actions: loom.ClusterCreate.Steps()[3:], Secrets: []string{providerSecret},
		Spec:   func(action loom.TaskAction) *loom.TaskSpec { return service("shell", action, do(string(action))) },
		Broken: change("fail"), Slow: change("wait")}, nil
}
