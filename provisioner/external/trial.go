package external

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
)

// Trial is a call whose circumstances are chosen, to see what a plugin makes of
// them.
type Trial struct {
	Kind, Type, Action string
	// Spec is the task that the request is made of.
	Spec *loom.TaskSpec
	// Body replaces the request; nil: that of Spec.
	Body []byte
	// Files is the directory with the resources.
	Files string
	// Target is the machine to lend a sign-in to, or nil.
	Target *remote.Target
	// Bare leaves out of the environment what a plugin should not need.
	Bare bool
}

// Seen is what a trial showed.
type Seen struct {
	Result loom.TaskResult
	// Exit is the exit status, -1 after a signal, which Signal names.
	Exit   int
	Signal string
	// Results is how many messages of type result came.
	Results int
	// Output are all lines of both streams, before anything was hidden.
	Output []string
	// Killed says that the plugin was told to end and did not within the grace.
	Killed bool
	// Left is how many of its processes were there after its end.
	Left int
}

// Try carries out a trial. Cancelling ctx ends the plugin as an abort does.
func (h *Host) Try(ctx context.Context, p *Plugin, trial Trial, sink loom.Sink) (Seen, error) {
	var seen Seen
	var mu sync.Mutex
	watching := *h
	watching.Tap = func(stream, line string) {
		mu.Lock()
		defer mu.Unlock()
		seen.Output = append(seen.Output, line)
		if m, ok := decode([]byte(line)); ok && stream == "stdout" && m.kind == msgResult {
			seen.Results++
		}
		if h.Tap != nil {
			h.Tap(stream, line)
		}
	}
	spec := *trial.Spec
	spec.Action = loom.TaskAction(trial.Action)
	c := specCall(p, trial.Kind, trial.Type, &spec, trial.Files)
	c.body, c.bare, c.target = trial.Body, trial.Bare, trial.Target
	var err error
	seen.Result, err = watching.run(ctx, c, sink)
	if c.ended == nil {
		seen.Exit = -1
		return seen, err
	}
	seen.Exit, seen.Killed, seen.Left = c.ended.status.ExitStatus(), c.ended.killed, c.ended.left
	if c.ended.status.Signaled() {
		seen.Signal = signalName(c.ended.status.Signal())
	}
	return seen, err
}

// Run carries out one action with a request as it is in a file. The type is the request's, or the only one of the kind. An error of kind
// loom.Invalid says what is wrong with the request.
func (h *Host) Run(ctx context.Context, p *Plugin, kind, action string, body []byte, target *remote.Target, files string, sink loom.Sink) (loom.TaskResult, error) {
	to := &problems{}
	o, err := readObject(body, to)
	if err != nil {
		return loom.TaskResult{}, loom.NewError(loom.Invalid, "The request cannot be read: %v.", err)
	}
	typeName, err := p.typeFor(kind, o.text("type"))
	if err != nil {
		return loom.TaskResult{}, err
	}
	if err := loom.InvalidFields(to.errs); err != nil {
		return loom.TaskResult{}, err
	}
	task, _ := o.values["task"].(map[string]any)
	ids := map[string]string{}
	for name, key := range map[string]string{"LOOM_TASK_ID": "taskId", "LOOM_ATTEMPT": "attempt", "LOOM_CLUSTER_ID": "clusterId", "LOOM_NODE_ID": "nodeId", "LOOM_TENANT_ID": "tenantId"} {
		ids[name] = loom.FieldText(task[key])
	}
	o.values["protocol"], o.values["kind"], o.values["type"], o.values["action"] = Protocol, kind, typeName, action
	c := &call{plugin: p, kind: kind, typeName: typeName, action: action, ids: ids, files: files, target: target}
	c.request = func(string) (map[string]any, error) { return o.values, nil }
	c.secrets = sensitiveIn(p.Manifest.Types[typeName].Describes, o.values)
	return h.run(ctx, c, sink)
}

// typeFor returns the type of a kind that is asked for, or the only one.
func (p *Plugin) typeFor(kind, name string) (string, error) {
	var all []string
	for _, candidate := range sortedKeys(p.Manifest.Types) {
		if p.Manifest.Types[candidate].Kind == kind {
			all = append(all, candidate)
		}
	}
	switch {
	case len(all) == 0:
		return "", loom.NewError(loom.Invalid, "The plugin %s declares no %s type.", p.Manifest.Name, kind)
	case name == "" && len(all) == 1:
		return all[0], nil
	case !slices.Contains(all, name):
		return "", loom.InvalidFields([]loom.FieldError{{Field: "type", Message: "The request names the type “" + name + "”; the plugin declares " + jsonText(all) + "."}})
	}
	return name, nil
}

func jsonText(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(data)
}

// sensitiveIn finds the values of a request's sensitive fields.
func sensitiveIn(t loom.PluginType, request map[string]any) (found []string) {
	input, _ := request["input"].(map[string]any)
	fields, _ := input["fields"].(map[string]any)
	common := provider.CommonFields()
	for name, value := range fields {
		text, ok := value.(string)
		if ok && (t.Hides(name) || common[name].IsSensitive()) {
			found = append(found, text)
		}
	}
	return found
}
