// Package chefsolo is the automator that converges machines with Chef or Cinc,
// without a server.
//
// What cookbooks read of a cluster is a contract: the attributes below “coopr” are
// laid out as users' cookbooks know them, and again below “loom”. The package must
// not interpret run lists or cookbooks.
package chefsolo

import (
	"archive/tar"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/remote"
	"loom/provisioner/resource"
)

//go:embed bootstrap.sh
var bootstrapScript string

// Directories on the machine.
const (
	cacheDir = "/var/cache/loom"
	chefDir  = "/var/chef"
	// secretFile is where Chef looks for the key of encrypted data bags.
	secretFile = "/etc/chef/encrypted_data_bag_secret"

	// secretSize is the most that is read of that key, in bytes.
	secretSize = 1 << 20
)

// ChefSolo is the automator; the zero value is ready to use.
type ChefSolo struct{}

// New returns the automator.
func New() ChefSolo { return ChefSolo{} }

// Type describes the automator type for the catalog.
func (ChefSolo) Type() loom.PluginType { return Type() }

// kinds are the resources that go to the machine, with the mode of their directories.
var kinds = []struct {
	name string
	mode fs.FileMode
}{{"cookbooks", 0o755}, {"data_bags", 0o750}, {"roles", 0o755}}

// Bootstrap installs Chef where it is missing and uploads the tenant's cookbooks,
// data bags and roles, each in the place of what was there.
func (ChefSolo) Bootstrap(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error) {
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
			if err := tree.AddResources("", files, kind.name); err != nil {
				return loom.TaskResult{}, err
			}
		}
		sent, err := conn.UploadTree(ctx, tree, chefDir+"/"+kind.name, remote.TreeOptions{Root: true, Owner: "root:root", Replace: true, Mode: kind.mode})
		if err != nil {
			return remote.Failure(err)
		}
		if sent {
			sink.Log("loom", kind.name+" uploaded to "+chefDir)
		}
	}
	return loom.TaskResult{}, nil
}

var (
	version   = regexp.MustCompile(`^[0-9]+(\.[0-9]+){0,2}$`)
	installer = regexp.MustCompile(`^https?://[^\s'"]+$`)
	runItem   = regexp.MustCompile(`^((recipe|role)\[[A-Za-z0-9_.:@-]+\]|[A-Za-z0-9_.:@-]+)$`)
)

// installation reads how Chef gets onto machines that have none.
func installation(fields map[string]string) (map[string]string, error) {
	env := map[string]string{"LOOM_DISTRIBUTION": "cinc"}
	switch d := strings.TrimSpace(fields["chef_distribution"]); d {
	case "":
	case "cinc", "chef", "preinstalled":
		env["LOOM_DISTRIBUTION"] = d
	default:
		return nil, fmt.Errorf("field “chef_distribution” is %.100q; give cinc, chef or preinstalled", d)
	}
	if v := strings.TrimSpace(fields["chef_version"]); v != "" {
		if !version.MatchString(v) {
			return nil, fmt.Errorf("field “chef_version” is %.100q; give a version such as 17.10.0", v)
		}
		env["LOOM_VERSION"] = v
	}
	if u := strings.TrimSpace(fields["installer_url"]); u != "" {
		if !installer.MatchString(u) {
			return nil, fmt.Errorf("field “installer_url” is %.200q; give the URL of an install script", u)
		}
		env["LOOM_INSTALLER"] = u
	}
	return env, nil
}

// runList reads the field run_list without its white space.
func runList(text string) (string, error) {
	list := strings.Join(strings.Fields(text), "")
	if list == "" {
		return "", fmt.Errorf("field “run_list” is empty; name recipes and roles such as recipe[nginx::default],role[site]")
	}
	for _, item := range strings.Split(list, ",") {
		if !runItem.MatchString(item) {
			return "", fmt.Errorf("field “run_list” has %.200q; name recipes and roles such as recipe[nginx::default],role[site]", item)
		}
	}
	return list, nil
}

// Run writes the attributes of the action and converges its run list.
func (ChefSolo) Run(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error) {
	fields := spec.Service.Action.Fields
	list, err := runList(fields["run_list"])
	if err != nil {
		return automator.Refuse("service %s: %v", spec.Service.Name, err), nil
	}
	attributes, err := automator.ObjectField(fields, "json_attributes")
	if err == nil && loom.SwitchedOn(fields["strict_attributes"]) {
		err = clash("", spec.Config, attributes)
	}
	if err != nil {
		return automator.Refuse("service %s: %v", spec.Service.Name, err), nil
	}
	license := strings.TrimSpace(fields["chef_license"])
	if license != "" && !slices.Contains([]string{"accept", "accept-silent", "accept-no-persist"}, license) {
		return automator.Refuse("service %s: field “chef_license” is %.100q; give accept, accept-silent or accept-no-persist", spec.Service.Name, license), nil
	}
	secret, err := bagSecret(files)
	if err != nil {
		return automator.Refuse("%v", err), nil
	}
	document, err := Attributes(spec, attributes)
	if err != nil {
		return loom.TaskResult{}, err
	}
	archive, err := pack(spec, document, secret)
	if err != nil {
		return loom.TaskResult{}, err
	}
	sink.Log("loom", "converging "+list)
	var env map[string]string
	if license != "" {
		env = map[string]string{"CHEF_LICENSE": license}
	}
	outcome, err := conn.Exec(ctx, remote.Command{Text: command(spec, list, secret != nil), Root: true, Env: env, Stdin: bytes.NewReader(archive), Line: sink.Log})
	if err != nil {
		tidy(ctx, conn, spec, secret != nil, sink)
		return remote.Failure(err)
	}
	r := loom.TaskResult{Stdout: outcome.Stdout, Stderr: outcome.Stderr}
	switch {
	case outcome.Signal != "":
		r.Status, r.Message = 1, fmt.Sprintf("chef-solo was ended by signal %s", outcome.Signal)
	case outcome.Code == 125:
		r.Status, r.Message = 1, remote.LastLine(outcome.Stderr)
	case outcome.Code != 0:
		r.Status, r.Message, r.Retryable = 1, fmt.Sprintf("chef-solo exited with %d", outcome.Code), automator.Final(outcome.Code)
	}
	return r, nil
}

// Attributes makes the document that chef-solo is given: the cluster's config with
// the attributes of the action merged over it, and what cookbooks may know of the
// cluster below “coopr” and “loom”.
func Attributes(spec *loom.TaskSpec, attributes map[string]any) ([]byte, error) {
	payload := spec.Payload(false)
	config, _ := payload["config"].(map[string]any)
	merged := automator.Merge(spec.Config, attributes, true)
	cluster := automator.Merge(merged, map[string]any{}, true)
	cluster["nodes"] = config["nodes"]
	told := map[string]any{
		"cluster": cluster, "services": config["services"], "hostname": spec.Hostname,
		"clusterId": spec.Ref.Operation.Cluster.String(), "ipaddresses": config["ipaddresses"],
	}
	document, err := json.Marshal(automator.Merge(merged, map[string]any{"coopr": told, "loom": told}, true))
	if err != nil {
		return nil, fmt.Errorf("write the attributes of a chef run: %w", err)
	}
	return document, nil
}

// clash finds a value that both objects set otherwise.
func clash(at string, config, attributes map[string]any) error {
	for key, value := range attributes {
		other, both := config[key]
		if !both {
			continue
		}
		inner, isObject := value.(map[string]any)
		beneath, too := other.(map[string]any)
		if isObject && too {
			if err := clash(at+key+".", beneath, inner); err != nil {
				return err
			}
			continue
		}
		a, errA := json.Marshal(value)
		b, errB := json.Marshal(other)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			return fmt.Errorf("the config and field “json_attributes” both set %s%s; take it out of one, or switch “strict_attributes” off", at, key)
		}
	}
	return nil
}

// bagSecret reads the key of encrypted data bags, nil where there is none.
func bagSecret(files string) ([]byte, error) {
	if files == "" {
		return nil, nil
	}
	names, err := resource.Names(files, "secrets")
	if err != nil {
		return nil, fmt.Errorf("the secrets of the data bags cannot be read: %v", err)
	}
	switch len(names) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, fmt.Errorf("there are %d resources of type secrets, but one key opens the data bags; withdraw the others", len(names))
	}
	data, err := resource.Read(files, "secrets", names[0], secretSize)
	if err != nil {
		return nil, fmt.Errorf("the secret of the data bags cannot be read: %v", err)
	}
	return data, nil
}

func documentFile(spec *loom.TaskSpec) string { return cacheDir + "/" + spec.Ref.String() + ".json" }

// pack makes the archive of what a run needs, relative to the root of the machine.
func pack(spec *loom.TaskSpec, document, secret []byte) ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	add := func(name string, data []byte) error {
		if err := archive.WriteHeader(&tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: 0o600, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err := archive.Write(data)
		return err
	}
	err := add(documentFile(spec), document)
	if err == nil && secret != nil {
		err = add(secretFile, secret)
	}
	if err == nil {
		err = archive.Close()
	}
	return out.Bytes(), err
}

func leftovers(spec *loom.TaskSpec, secret bool) string {
	files := documentFile(spec)
	if secret {
		files += " " + secretFile
	}
	return files
}

// command unpacks the files, runs Chef and removes the files, whatever came of it.
func command(spec *loom.TaskSpec, list string, secret bool) string {
	return "umask 077\nmkdir -p " + cacheDir + " /etc/chef && tar -xof - -C / || { echo 'the attributes could not be written to " + cacheDir + "' >&2; exit 125; }\n" +
		"trap 'rm -f " + leftovers(spec, secret) + "' EXIT\numask 022\nexec </dev/null\n" +
		"solo=\nfor p in chef-solo cinc-solo /opt/chef/bin/chef-solo /opt/cinc/bin/cinc-solo; do\n" +
		"  [ -n \"$solo\" ] || solo=$(command -v $p)\ndone\n" +
		"[ -n \"$solo\" ] && [ -f " + cacheDir + "/solo.rb ] || { echo 'there is no chef-solo on this machine; was the node bootstrapped?' >&2; exit 125; }\n" +
		"\"$solo\" --no-color -c " + cacheDir + "/solo.rb -j " + documentFile(spec) + " -o " + remote.Quote(list) + "\n"
}

// tidy removes the files of a run that was broken off.
func tidy(ctx context.Context, conn *remote.Conn, spec *loom.TaskSpec, secret bool, sink loom.Sink) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remote.ConnectTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, remote.Command{Text: "rm -f " + leftovers(spec, secret), Root: true}); err != nil {
		sink.Log("loom", "warning: "+err.Error())
	}
}
