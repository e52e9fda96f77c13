package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"loom/app/loom"
	mockprovider "loom/provisioner/provider/mock"
	"loom/provisioner/remote"
)

// leakyProvider invents machines with passwords, and tells them to everybody.
type leakyProvider struct {
	mockprovider.Provider
	c *canary
}

func (leakyProvider) Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: "vault", Label: "Vault"},
		Parameters: map[string]loom.FieldGroup{
			"admin": {Fields: map[string]loom.FieldSchema{
				"zone": {Label: "Zone", Type: "text"}, "api_password": {Label: "Password", Type: "password"},
				"sensitive_text": {Label: "Text", Type: "text", Sensitive: true},
			}, Required: [][]string{{"zone", "api_password"}}},
			"user": {Fields: map[string]loom.FieldSchema{"user_pin": {Label: "PIN", Type: "password"}}, Required: [][]string{{"user_pin"}}},
		},
		ResourceTypes: map[string]loom.ResourceType{"ssh_keys": {Format: "file", Permissions: "0400"}},
	}
}

func (p leakyProvider) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	if err := sink.Fact(map[string]any{"ssh-auth": map[string]any{"user": "root", "password": p.c.text("password of a machine")}}); err != nil {
		return loom.TaskResult{}, err
	}
	result, err := p.Provider.Create(ctx, spec, sink)
	result.Result["ssh-auth"] = map[string]any{"user": "root", "password": p.c.text("password of a machine")}
	result.Result["registration"] = map[string]any{"url": "https://registry.example", "api_token": p.c.text("token of a machine")}
	result.Message = "made; the password is " + p.c.text("password of a machine")
	blab(spec, sink)
	return result, err
}

// blab logs all that a plugin is told.
func blab(spec *loom.TaskSpec, sink loom.Sink) {
	sink.Log("stdout", fmt.Sprint(spec.Provider.Fields, spec.Results, spec.Config))
	sink.Log("stderr", spec.PrivateKey.Reveal())
	body, _ := json.Marshal(map[string]any{"fields": spec.Provider.Fields, "results": spec.Results}) //nolint:errcheck // plain values
	sink.Log("stdout", string(body))
	sink.Log("stdout", base64.StdEncoding.EncodeToString(fmt.Append(nil, spec.Provider.Fields["user_pin"])))
}

// leakyAutomator fails first, with all that it knows in its output.
type leakyAutomator struct{}

func (leakyAutomator) Type() loom.PluginType {
	return loom.PluginType{Base: loom.Base{Name: "leaky"}, Parameters: map[string]loom.FieldGroup{}, ResourceTypes: map[string]loom.ResourceType{}}
}

func (leakyAutomator) Offline() bool { return true }

func (leakyAutomator) Bootstrap(_ context.Context, spec *loom.TaskSpec, _ *remote.Conn, _ string, sink loom.Sink) (loom.TaskResult, error) {
	blab(spec, sink)
	return loom.TaskResult{}, nil
}

func (leakyAutomator) Run(_ context.Context, spec *loom.TaskSpec, _ *remote.Conn, _ string, sink loom.Sink) (loom.TaskResult, error) {
	blab(spec, sink)
	if auth, _ := spec.Results["ssh-auth"].(map[string]any); auth["password"] == nil {
		return loom.TaskResult{Status: 1, Message: "the password of the machine did not arrive"}, nil
	}
	told := fmt.Sprint(spec.Provider.Fields, spec.Results, spec.PrivateKey.Reveal())
	if spec.Attempt == 1 {
		return loom.TaskResult{Status: 1, Message: told, Stdout: told, Stderr: told}, nil
	}
	return loom.TaskResult{Message: told, Result: map[string]any{"talk_secret": told}}, nil
}
