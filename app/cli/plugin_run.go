package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/app/wiring"
	"loom/provisioner"
	"loom/provisioner/external"
	"loom/provisioner/remote"
)

// pluginRun carries out one action of a plugin with a request from a file or
// standard input, and prints the result. What the plugin says goes to standard
// error.
func (e *environment) pluginRun(ctx context.Context, args []string) error {
	target, args, err := machineOf(args)
	if err != nil {
		return err
	}
	files, args, err := resourcesOf(args)
	if err != nil {
		return err
	}
	if len(args) < 3 {
		return wiring.UsageError("loom plugin run DIR KIND ACTION [FILE], with the request in FILE or on standard input")
	}
	kind, action := args[1], args[2]
	if kind != external.KindProvider && kind != external.KindAutomator {
		return wiring.UsageError("a plugin is run as provider or automator, not as “%s”", kind)
	}
	h, err := e.PluginHost()
	if err != nil {
		return err
	}
	p, err := h.Load(args[0])
	if err != nil {
		return err
	}
	body, name, err := readDocument(os.Stdin, "plugin run", args[3:])
	if err != nil {
		return err
	}
	result, err := h.Run(ctx, p, kind, action, body, target, files, printer{e.ErrOut})
	if err != nil {
		return unreadable(fmt.Errorf("%s: %w", name, err))
	}
	return e.printResult(result)
}

// printResult prints a result as JSON, without its secrets; the exit status is 1
// unless it is a success.
func (e *environment) printResult(result loom.TaskResult) error {
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
		return &exitStatus{code: exitFound}
	}
	return nil
}

// resourcesOf takes the flag --resources from args and gives the directory.
func resourcesOf(args []string) (dir string, rest []string, err error) {
	dir, rest, found := wiring.TakeFlag(args, "resources")
	if !found {
		return "", rest, nil
	}
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return "", nil, wiring.UsageError("--resources is “%s”; it takes a directory with plugin resources", dir)
	}
	dir, err = filepath.Abs(dir)
	return dir, rest, err
}

// machineOf takes the flags --ssh and --ssh-key from args; nil without them.
func machineOf(args []string) (*remote.Target, []string, error) {
	place, args, given := wiring.TakeFlag(args, "ssh")
	file, args, keyed := wiring.TakeFlag(args, "ssh-key")
	if !given && !keyed {
		return nil, args, nil
	}
	user, address, ok := strings.Cut(place, "@")
	if !ok || user == "" || address == "" || !keyed {
		return nil, nil, wiring.UsageError("a machine is given as --ssh USER@HOST[:PORT] --ssh-key FILE")
	}
	t := &remote.Target{User: user, Address: address, Reach: loom.Anywhere()}
	if host, port, err := net.SplitHostPort(address); err == nil {
		t.Address = host
		if t.Port, err = strconv.Atoi(port); err != nil || t.Port < 1 || t.Port > 65535 {
			return nil, nil, wiring.UsageError("“%s” is no port of --ssh", port)
		}
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, &exitStatus{exitUnreadable, fmt.Errorf("read the key of --ssh-key: %w", err)}
	}
	t.Keys = []loom.Secret{loom.NewSecret(string(key))}
	return t, args, nil
}

// pluginRunTask carries out the task in a file as a provisioner would, with
// built-in plugins and others, but for the queue: nothing is stored.
func (e *environment) pluginRunTask(ctx context.Context, args []string) error {
	files, args, err := resourcesOf(args)
	if err != nil {
		return err
	}
	if len(args) != 1 {
		return wiring.UsageError("loom plugin run-task FILE, the task as JSON; “-” reads standard input")
	}
	body, name, err := readDocument(os.Stdin, "plugin run-task", args)
	if err != nil {
		return err
	}
	spec, err := decodeTask(body)
	if err != nil {
		return &exitStatus{exitUnreadable, fmt.Errorf("%s: %w", name, err)}
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
	runner := &provisioner.Runner{Networks: networks, Providers: p.Providers, Automators: p.Automators, Pool: pool, Log: e.Log, Files: files}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { cancel(provisioner.ErrAborted) })
	defer stop()
	return e.printResult(runner.Run(ctx, spec, printer{e.ErrOut}))
}

// decodeTask reads the payload of a task (provisioner.md 3).
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
