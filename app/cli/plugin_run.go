package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/app/wiring"
	"loom/provisioner"
	"loom/provisioner/remote"
)

type pluginRun struct {
	Dir    string `arg:"" help:"Directory with plugin.json."`
	Kind   string `arg:"" enum:"provider,automator" help:"provider or automator."`
	Action string `arg:"" help:"The action, such as create or start."`
	document
	machineFlag
	Resources string `type:"existingdir" placeholder:"DIR" help:"Plugin resources, as RESOURCETYPE/NAME."`
}

// Run runs one action of a plugin with a request from a file or standard input,
// and prints the result. Output of the plugin goes to standard error.
func (c *pluginRun) Run(ctx context.Context, in io.Reader, e *wiring.Environment) error {
	target, err := c.target()
	if err != nil {
		return err
	}
	h, err := e.PluginHost()
	if err != nil {
		return err
	}
	p, err := h.Load(c.Dir)
	if err != nil {
		return err
	}
	body, name, err := c.read(in)
	if err != nil {
		return err
	}
	result, err := h.Run(ctx, p, c.Kind, c.Action, body, target, c.Resources, printer{e.ErrOut})
	if err != nil {
		return unreadable(fmt.Errorf("%s: %w", name, err))
	}
	return printResult(e, result)
}

// printResult prints a result as JSON, without its secrets; the exit status is 1
// unless it is a success.
func printResult(e *wiring.Environment, result loom.TaskResult) error {
	if result.Result != nil {
		open, hidden := loom.SplitFacts(result.Result)
		for name := range hidden {
			if open[name] == nil {
				open[name] = loom.Redacted
			}
		}
		result.Result = open
	}
	encoder := json.NewEncoder(e.Out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return err
	}
	if result.Status != 0 {
		return &exitStatus{code: exitFailed}
	}
	return nil
}

// machineFlag is a machine that automators may sign in to.
type machineFlag struct {
	SSH    string `name:"ssh" and:"ssh" placeholder:"USER@HOST[:PORT]" help:"A machine that automators may sign in to."`
	SSHKey string `name:"ssh-key" and:"ssh" placeholder:"FILE" help:"Its private key."`
}

// target returns the machine, nil without one.
func (m machineFlag) target() (*remote.Target, error) {
	if m.SSH == "" {
		return nil, nil
	}
	user, address, ok := strings.Cut(m.SSH, "@")
	if !ok || user == "" || address == "" {
		return nil, usageError("--ssh takes USER@HOST[:PORT], not “%s”", m.SSH)
	}
	t := &remote.Target{User: user, Address: address, Reach: loom.Anywhere()}
	if host, port, err := net.SplitHostPort(address); err == nil {
		t.Address = host
		if t.Port, err = strconv.Atoi(port); err != nil || t.Port < 1 || t.Port > 65535 {
			return nil, usageError("“%s” is no port of --ssh", port)
		}
	}
	key, err := os.ReadFile(m.SSHKey)
	if err != nil {
		return nil, usageError("read the key of --ssh-key: %w", err)
	}
	t.Keys = []loom.Secret{loom.NewSecret(string(key))}
	return t, nil
}

type pluginRunTask struct {
	File      string `arg:"" help:"The task as JSON; “-” reads standard input."`
	Resources string `type:"existingdir" placeholder:"DIR" help:"Plugin resources, as providertypes/TYPE/RESOURCETYPE/NAME and automatortypes/…."`
}

// Run runs the task in a file as a provisioner would, with built-in plugins and
// others, but without the queue: nothing is stored.
func (c *pluginRunTask) Run(ctx context.Context, in io.Reader, e *wiring.Environment) error {
	body, name, err := document{c.File}.read(in)
	if err != nil {
		return err
	}
	spec, err := decodeTask(body)
	if err != nil {
		return &exitStatus{exitUsage, fmt.Errorf("%s: %w", name, err)}
	}
	p, err := e.Plugins()
	if err != nil {
		return err
	}
	spec.Sensitive = sensitiveOf(p, spec)
	networks, err := e.Reach()
	if err != nil {
		return err
	}
	pool := remote.NewPool()
	defer pool.Close()
	runner := &provisioner.Runner{Networks: networks, Providers: p.Providers, Automators: p.Automators, Pool: pool, Log: e.Log, Files: c.Resources}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { cancel(provisioner.ErrAborted) })
	defer stop()
	return printResult(e, runner.Run(ctx, spec, printer{e.ErrOut}))
}

// decodeTask reads the payload of a task.
func decodeTask(body []byte) (*loom.TaskSpec, error) {
	var p struct {
		TaskID, TaskName, IdempotencyKey string
		NodeID                           loom.NodeID
		TenantID                         loom.TenantID
		Attempt                          int
		Config                           struct {
			Hostname, SSHUser, HardwareType, ImageType, Flavor, Image string
			IPAddresses                                               map[string]string
			NodeNum                                                   int
			Automators, Services                                      []string
			Provider                                                  struct {
				Name, Description, ProviderType string
				Version                         int
				Provisioner                     map[string]any
			}
			Cluster map[string]any
			Nodes   map[loom.NodeID]loom.NodeProperties
			Service *loom.TaskService
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, loom.NewError(loom.Invalid, "The task cannot be read: %v.", err)
	}
	var facts struct{ Config map[string]any }
	if err := json.Unmarshal(body, &facts); err != nil {
		return nil, err
	}
	action := loom.TaskAction(strings.ToLower(p.TaskName))
	var wrong []loom.FieldError
	if !action.Valid() {
		wrong = append(wrong, loom.FieldError{Field: "taskName", Message: fmt.Sprintf("“%s” is no action of a task; give one such as CREATE or START.", p.TaskName)})
	}
	ref, ok := parseTaskRef(p.TaskID)
	if !ok && p.TaskID != "" {
		wrong = append(wrong, loom.FieldError{Field: "taskId", Message: fmt.Sprintf("“%s” is no task; give one such as 00000012-001-034.", p.TaskID)})
	}
	if !action.OfNode() && action.Valid() && p.Config.Service == nil {
		wrong = append(wrong, loom.FieldError{Field: "config.service", Message: "The task of a service names the service and its action."})
	}
	if p.Config.Provider.ProviderType == "" && action.OfNode() && action != loom.ActionBootstrap {
		wrong = append(wrong, loom.FieldError{Field: "config.provider.providertype", Message: "Say which provider type makes the machine."})
	}
	if len(wrong) > 0 {
		return nil, loom.InvalidFields(wrong)
	}
	c := p.Config
	spec := &loom.TaskSpec{
		Ref: ref, Tenant: p.TenantID, Action: action, Attempt: max(1, p.Attempt), IdempotencyKey: p.IdempotencyKey,
		Node: p.NodeID, NodeNumber: c.NodeNum, Hostname: c.Hostname, Addresses: c.IPAddresses, SSHUser: c.SSHUser,
		HardwareType: c.HardwareType, ImageType: c.ImageType, Flavor: c.Flavor, Image: c.Image, Automators: c.Automators, Services: c.Services,
		Provider: loom.Provider{Base: loom.Base{Name: c.Provider.Name, Description: c.Provider.Description, Version: c.Provider.Version}, Type: c.Provider.ProviderType, Fields: c.Provider.Provisioner},
		Config:   c.Cluster, Nodes: c.Nodes, Service: c.Service, Results: map[string]any{},
		Reach: loom.Reach{Private: true}, // whoever runs this is trusted as the operator is
	}
	for name, value := range facts.Config {
		if !loom.FixedConfigKey(name) {
			spec.Results[name] = value
		}
	}
	return spec, nil
}

func parseTaskRef(text string) (loom.TaskRef, bool) {
	i := strings.LastIndexByte(text, '-')
	if i < 0 {
		return loom.TaskRef{}, false
	}
	operation, ok := loom.ParseOperationRef(text[:i])
	n, err := strconv.Atoi(text[i+1:])
	return loom.TaskRef{Operation: operation, Number: n}, ok && err == nil && n > 0
}

// sensitiveOf finds the values of a task that must not be printed.
func sensitiveOf(p *wiring.Plugins, spec *loom.TaskSpec) []string {
	described, _ := p.Providers.Describe(spec.Provider.Type)
	var values []string
	for name, value := range spec.Provider.Fields {
		text, ok := value.(string)
		if ok && described.Hides(name) {
			values = append(values, text)
		}
	}
	slices.Sort(values)
	return values
}
