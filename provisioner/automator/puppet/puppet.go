// Package puppet is the automator that applies Puppet manifests over SSH, without a
// server.
//
// What an action learns of its cluster is written to the machine as a fact and as
// the first layer of Hiera, for root only and for the time of the run. The package
// must not interpret manifests or the tenant's Hiera data, and must not quote the
// options of an action: they are a piece of shell text by contract.
package puppet

import (
	"archive/tar"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/remote"
)

//go:embed bootstrap.sh
var bootstrapScript string

// Directories on the machine.
const (
	cacheDir  = "/var/cache/loom"
	puppetDir = cacheDir + "/puppet"
)

// Puppet is the automator; the zero value is ready to use.
type Puppet struct{}

// New returns the automator.
func New() Puppet { return Puppet{} }

// Type describes the automator type for the catalog.
func (Puppet) Type() loom.PluginType { return Type() }

// kinds are the resources that go to the machine, with the modes of their directories.
var kinds = []string{"modules", "manifests", "hiera", "eyaml_keys"}

// Bootstrap installs Puppet where it is missing and uploads the tenant's modules,
// manifests, Hiera data and keys, each in the place of what was there.
func (Puppet) Bootstrap(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error) {
	env, err := installation(spec.BootstrapFields[TypeName])
	if err != nil {
		return automator.Refuse("%v", err), nil
	}
	out, err := conn.Exec(ctx, remote.Command{Text: automator.Directories + bootstrapScript, Root: true, Env: env, Line: sink.Log})
	if err != nil {
		return remote.Failure(err)
	}
	if !out.OK() {
		return loom.TaskResult{Status: 1, Message: remote.LastLine(out.Stderr), Stdout: out.Stdout, Stderr: out.Stderr}, nil
	}
	for _, kind := range kinds {
		tree := remote.NewTree()
		defer tree.Close()
		if files != "" {
			if err := tree.AddResources("", files, kind); err != nil {
				return loom.TaskResult{}, err
			}
		}
		sent, err := conn.UploadTree(ctx, tree, puppetDir+"/"+kind, remote.TreeOptions{Root: true, Owner: "root:root", Replace: true, Mode: 0o750})
		if err != nil {
			return remote.Failure(err)
		}
		if sent {
			sink.Log("loom", kind+" uploaded to "+puppetDir)
		}
	}
	return loom.TaskResult{}, nil
}

var (
	majorVersion = regexp.MustCompile(`^[0-9]{1,2}$`)
	installer    = regexp.MustCompile(`^https?://[^\s'"]+$`)
)

// installation reads how Puppet gets onto machines that have none.
func installation(fields map[string]string) (map[string]string, error) {
	env := map[string]string{"LOOM_DISTRIBUTION": "openvox", "LOOM_MAJOR": "8"}
	switch d := strings.TrimSpace(fields["puppet_distribution"]); d {
	case "":
	case "openvox", "puppet", "preinstalled":
		env["LOOM_DISTRIBUTION"] = d
	default:
		return nil, fmt.Errorf("field “puppet_distribution” is %.100q; give openvox, puppet or preinstalled", d)
	}
	if m := strings.TrimSpace(fields["puppet_major"]); m != "" {
		if !majorVersion.MatchString(m) {
			return nil, fmt.Errorf("field “puppet_major” is %.100q; give a number such as 8", m)
		}
		env["LOOM_MAJOR"] = m
	}
	if u := strings.TrimSpace(fields["installer_url"]); u != "" {
		if !installer.MatchString(u) {
			return nil, fmt.Errorf("field “installer_url” is %.200q; give the URL of a release package", u)
		}
		env["LOOM_INSTALLER"] = u
	}
	return env, nil
}

// Run applies the manifest or the classes of the action, or, for a start or stop
// without either, looks after a service of the operating system.
func (Puppet) Run(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, _ string, sink loom.Sink) (loom.TaskResult, error) {
	a, err := parse(spec)
	if err != nil {
		return automator.Refuse("service %s: %v", spec.Service.Name, err), nil
	}
	archive, err := a.files(spec)
	if err != nil {
		return loom.TaskResult{}, err
	}
	sink.Log("loom", "applying "+a.what)
	outcome, err := conn.Exec(ctx, remote.Command{Text: a.command(spec), Root: true, Stdin: bytes.NewReader(archive), Line: sink.Log})
	if err != nil {
		a.tidy(ctx, conn, spec, sink)
		return remote.Failure(err)
	}
	r := loom.TaskResult{Stdout: outcome.Stdout, Stderr: outcome.Stderr}
	switch {
	case outcome.Signal != "":
		r.Status, r.Message = 1, fmt.Sprintf("puppet was ended by signal %s", outcome.Signal)
	case outcome.Code == 0:
		r.Message = "nothing to change"
	case outcome.Code == 2 && !a.system():
		r.Message = "changed"
	case outcome.Code == 125:
		r.Status, r.Message = 1, remote.LastLine(outcome.Stderr)
	default:
		r.Status, r.Message = 1, fmt.Sprintf("%s: puppet exited with %d%s", a.what, outcome.Code, meaning[outcome.Code])
		r.Retryable = automator.Final(outcome.Code)
	}
	return r, nil
}

// meaning of the exit codes of puppet apply with --detailed-exitcodes.
var meaning = map[int]string{1: " (the run failed)", 4: " (some resources failed)", 6: " (some resources changed and some failed)"}

// action is what the fields of an action ask for.
type action struct {
	manifest, classes, args, hiera, environment, service string
	parameters                                           map[string]any
	// what is said of it in messages.
	what string
}

// system reports whether only a service of the operating system is looked after.
func (a *action) system() bool { return a.manifest == "" && a.classes == "" }

var (
	className       = regexp.MustCompile(`^(::)?[a-z][a-z0-9_]*(::[a-z][a-z0-9_]*)*$`)
	environmentName = regexp.MustCompile(`^[a-z0-9_]+$`)
	resourceName    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	serviceName     = regexp.MustCompile(`^[A-Za-z0-9_@][A-Za-z0-9_.@:-]*$`)
)

// parse reads the fields. The error names the field and the remedy.
func parse(spec *loom.TaskSpec) (*action, error) {
	fields := spec.Service.Action.Fields
	get := func(name string) string { return strings.TrimSpace(fields[name]) }
	a := &action{manifest: get("manifest"), args: get("args"), hiera: get("hiera_resource"), environment: get("environment"), service: get("service_name")}
	if a.environment == "" {
		a.environment = "production"
	}
	if !environmentName.MatchString(a.environment) {
		return nil, fmt.Errorf("field “environment” is %.100q; an environment has lower-case letters, digits and _", a.environment)
	}
	if a.hiera != "" && !resourceName.MatchString(a.hiera) {
		return nil, fmt.Errorf("field “hiera_resource” is %.100q; name a resource of type hiera", a.hiera)
	}
	var err error
	if a.parameters, err = automator.ObjectField(fields, "parameters"); err != nil {
		return nil, err
	}
	var classes []string
	for _, name := range strings.Split(get("classes"), ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !className.MatchString(name) {
			return nil, fmt.Errorf("field “classes” has %.100q; name classes such as web::service, separated by commas", name)
		}
		classes = append(classes, name)
	}
	a.classes = strings.Join(classes, ", ")
	switch {
	case a.manifest != "" && a.classes != "":
		return nil, fmt.Errorf("both “manifest” and “classes” are set; set one of them")
	case a.manifest != "":
		if !resourceName.MatchString(a.manifest) {
			return nil, fmt.Errorf("field “manifest” is %.100q; name a resource of type manifests", a.manifest)
		}
		a.what = "manifest " + a.manifest
	case a.classes != "":
		a.what = "classes " + a.classes
	case a.service == "":
		return nil, fmt.Errorf("name a “manifest” or “classes”, or for start and stop a “service_name”")
	case spec.Action != loom.ActionStart && spec.Action != loom.ActionStop:
		return nil, fmt.Errorf("“service_name” alone serves only start and stop; name a “manifest” or “classes” for %s", spec.Action)
	case !serviceName.MatchString(a.service):
		return nil, fmt.Errorf("field “service_name” is %.100q; name a service of the operating system", a.service)
	default:
		a.what = "service " + a.service
	}
	return a, nil
}

func runDir(spec *loom.TaskSpec) string { return puppetDir + "/run/" + spec.Ref.String() }

// files packs what the run is told: the fact, the first layer of Hiera and its
// configuration. The second layer is the tenant's, in the place of the
// environment's own.
func (a *action) files(spec *loom.TaskSpec) ([]byte, error) {
	payload := spec.Payload(false)
	config, _ := payload["config"].(map[string]any)
	told := map[string]any{
		"clusterId": spec.Ref.Operation.Cluster.String(), "hostname": spec.Hostname, "ipaddresses": config["ipaddresses"], "services": config["services"],
		"service": spec.Service.Name, "action": string(spec.Action), "cluster": config["cluster"], "nodes": config["nodes"],
	}
	fact, err := json.Marshal(map[string]any{"loom": told})
	if err != nil {
		return nil, fmt.Errorf("write the fact of a puppet run: %w", err)
	}
	layer, err := json.Marshal(automator.Merge(spec.Config, a.parameters, false))
	if err != nil {
		return nil, fmt.Errorf("write the Hiera data of a puppet run: %w", err)
	}
	hiera := "---\nversion: 5\ndefaults:\n  datadir: data\n  data_hash: json_data\nhierarchy:\n  - name: loom\n    path: loom.json\n"
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, f := range []struct {
		name string
		data []byte
	}{{"facts/loom.json", fact}, {"data/loom.json", layer}, {"hiera.yaml", []byte(hiera)}} {
		if err := archive.WriteHeader(&tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(f.data)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// command unpacks the files, runs puppet and removes the files, whatever came of it.
func (a *action) command(spec *loom.TaskSpec) string {
	d := runDir(spec)
	var b strings.Builder
	fmt.Fprintf(&b, "puppet=/opt/puppetlabs/bin/puppet; [ -x $puppet ] || puppet=$(command -v puppet) || { echo 'there is no puppet on this machine; was the node bootstrapped?' >&2; exit 125; }\n")
	if a.system() {
		ensure := "running"
		if spec.Action == loom.ActionStop {
			ensure = "stopped"
		}
		fmt.Fprintf(&b, "exec $puppet resource --color=false service %s ensure=%s </dev/null\n", remote.Quote(a.service), ensure)
		return b.String()
	}
	environment := d + "/environments/" + a.environment
	fmt.Fprintf(&b, "umask 077\nrm -rf %[1]s && mkdir -p %[1]s/facts %[1]s/data %[1]s/environments && tar -xof - -C %[1]s || { echo 'the task could not be written to %[1]s' >&2; exit 125; }\n", d)
	fmt.Fprintf(&b, "trap 'rm -rf %s' EXIT\nexec </dev/null\n", d)
	if a.hiera != "" {
		fmt.Fprintf(&b, "[ -d %[1]s/hiera/%[2]s ] || { echo 'the hiera resource “%[2]s” is not on the machine; upload it, release it and configure again' >&2; exit 125; }\nln -s %[1]s/hiera/%[2]s %[3]s\n", puppetDir, a.hiera, environment)
	} else {
		fmt.Fprintf(&b, "mkdir %s\n", environment)
	}
	target := "-e " + remote.Quote("include "+a.classes)
	if a.manifest != "" {
		target = puppetDir + "/manifests/" + a.manifest
		fmt.Fprintf(&b, "[ -f %[1]s ] || { echo 'the manifest “%[2]s” is not on the machine; upload it, release it and configure again' >&2; exit 125; }\n", target, a.manifest)
	}
	fmt.Fprintf(&b, "umask 022\n$puppet apply --detailed-exitcodes --color=false --modulepath %s/modules --hiera_config %s/hiera.yaml --environmentpath %s/environments --environment %s --pluginfactdest %s/facts %s %s\n",
		puppetDir, d, d, a.environment, d, a.args, target)
	return b.String()
}

// tidy removes the files of a run that was broken off.
func (a *action) tidy(ctx context.Context, conn *remote.Conn, spec *loom.TaskSpec, sink loom.Sink) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remote.ConnectTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, remote.Command{Text: "rm -rf " + runDir(spec), Root: true}); err != nil {
		sink.Log("loom", "warning: "+err.Error())
	}
}
