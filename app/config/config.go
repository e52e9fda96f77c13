// Package config is the one table of Loom's options: variable, flag, type,
// default, help. The flags of subcommands, their help, `loom config` and
// docs/configuration.md are made from it. Flag beats environment beats LOOM_*_FILE
// beats default.
//
// Only package cli reads options, once, at start; nothing else looks at the
// environment.
package config

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
)

// Option is a row of the table. Its flag is the name in lower case with dashes:
// LOOM_LISTEN_ADDR is --listen-addr.
type Option struct {
	Name    string
	Type    string // "text", "number", "duration", "switch"
	Default string
	Secret  bool
	// For names the subcommands that use it.
	For []string
	// Help is one sentence.
	Help string
}

// Flag is the option's flag without dashes in front.
func (o Option) Flag() string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(o.Name, "LOOM_")), "_", "-")
}

var (
	everywhere = []string{"up", "web", "scheduler", "provisioner", "migrate", "seed", "user", "tenant", "token", "keys", "audit", "config", "plugin", "stop", "clean"}
	machines   = []string{"up", "provisioner", "plugin"}
	servers    = []string{"up", "web", "scheduler", "provisioner"}
)

// Options is the table, in the order in which it is printed.
var Options = []Option{
	{"LOOM_DATA_DIR", "text", "./var", false, everywhere, "Directory of all local files of this instance: private database, keys, base roots, machines, plugin files."},
	{"LOOM_LISTEN_ADDR", "text", "127.0.0.1:8080", false, []string{"up", "web"}, "Address of the pages and the REST API."},
	{"LOOM_PUBLIC_URL", "text", "", false, []string{"up", "web", "scheduler"}, "URL of Loom for browsers, if it differs from the listen address (behind a proxy)."},
	{"LOOM_DATABASE_URL", "text", "", true, everywhere, "PostgreSQL to use (14 or newer); empty: a private one in the data directory."},
	{"LOOM_PG_BIN", "text", "", false, []string{"up", "migrate", "seed", "user", "tenant", "token", "keys", "audit", "plugin", "stop", "clean"}, "Directory of initdb and postgres for the private database; empty: found on this machine."},
	{"LOOM_DATABASE_CONNS", "number", "16", false, servers, "Connections of each process to the database, besides River's own."},
	{"LOOM_SECRET_KEY", "text", "", true, everywhere, "Comma-separated keys that seal secrets at rest, each base64 of 32 bytes. The first seals, all open. Empty: kept in the data directory."},
	{"LOOM_RESOURCES_URL", "text", "", false, []string{"up", "web", "scheduler", "provisioner", "seed", "tenant", "keys", "plugin"}, "Bucket of the plugin resources: file:///DIRECTORY, or s3://BUCKET?region=REGION with credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; empty: the folder “bucket” of the data directory."},
	{"LOOM_PROVISIONER_CAPACITY", "number", "100", false, []string{"up", "provisioner"}, "Maximum tasks a provisioner runs at once, for all tenants."},
	{"LOOM_DRAIN_TIMEOUT", "duration", "30m", false, []string{"up", "scheduler", "provisioner"}, "How long running tasks may continue after a request to stop. A second signal ends them at once."},
	{"LOOM_MAX_ATTEMPTS", "number", "3", false, []string{"up", "scheduler", "provisioner"}, "Attempts of a task before its operation fails; interrupted ones do not count."},
	{"LOOM_TASK_LIMITS", "text", "", false, []string{"up", "scheduler", "provisioner"}, "Time limits of attempts, as “create=900,shell/install=2h”: by action, or by plugin and action, in seconds or as a duration up to 24h. Defaults: create 600, delete 900, others 1800."},
	{"LOOM_MAX_CLUSTER_SIZE", "number", "10000", false, []string{"up", "web"}, "Maximum nodes of one cluster."},
	{"LOOM_HEALTH_ADDR", "text", "127.0.0.1:55056", false, []string{"provisioner", "scheduler"}, "Address of /healthz, /readyz and /metrics of a process without pages; empty: none."},
	{"LOOM_HEALTH_RATE", "number", "40", false, []string{"up", "provisioner"}, "Maximum nodes a provisioner checks per second. With too many nodes, checks are further apart."},
	{"LOOM_METRICS_NETWORKS", "text", "", false, servers, "Comma-separated networks that read /metrics without a token. Empty: this host only, or none behind a proxy (LOOM_PUBLIC_URL)."},
	{"LOOM_TRUSTED_HEADER_NETWORKS", "text", "", false, []string{"up", "web"}, "Comma-separated networks whose requests may name their user by headers alone; empty: none."},
	{"LOOM_TRUSTED_PROXIES", "text", "", false, []string{"up", "web"}, "Comma-separated networks of proxies. For their requests the client is the right-most address of X-Forwarded-For outside these networks. Empty: Loom ignores the header."},
	{"LOOM_HOOK_NETWORKS", "text", "", false, []string{"up", "web", "scheduler"}, "Comma-separated private networks that hooks may call; empty: public addresses only."},
	{"LOOM_IDENTITY_NETWORKS", "text", "", false, []string{"up", "web"}, "Comma-separated private networks in which identity providers may be; empty: public addresses only."},
	{"LOOM_PROVIDER_NETWORKS", "text", "", false, []string{"up", "web", "scheduler", "provisioner", "plugin"}, "Comma-separated networks that providers reach besides public addresses, and besides private ones if the tenant may. “!” before one blocks it, for hooks too. The narrowest match decides."},
	{"LOOM_LOCAL_MACHINE_MAX", "text", "", false, machines, "Limits of one local machine, as “mem=4g,pids=4096,cores=2,disk=20g”. Default: half of the host, and all processors. A flavor without a limit gets this one."},
	{"LOOM_LOCAL_TENANT_MAX", "text", "", false, machines, "Limits of all local machines of one tenant, as “mem=16g,pids=16384,cores=4,disk=100g,machines=50”. Default: three quarters of the host, and all processors."},
	{"LOOM_LOCAL_INTERNET", "switch", "true", false, machines, "Let providers of the type “local” give their machines internet (field “internet”)."},
	{"LOOM_LOCAL_NETWORKS", "text", "", false, machines, "Comma-separated networks that local machines with internet reach besides public addresses, and besides private ones if the tenant may."},
	{"LOOM_DISK_RESERVE", "text", "10%,5g", false, []string{"up", "web", "provisioner", "plugin"}, "Disk space to keep free: a share, a size, or the smaller of both; 0: none. With less, Loom refuses local machines, base roots and uploads."},
	{"LOOM_RESOURCE_BYTES", "number", "53687091200", false, []string{"up", "web"}, "Maximum bytes of plugin resources per tenant, all versions; 0: no limit."},
	{"LOOM_PLUGIN_PATH", "text", "", false, []string{"up", "seed", "provisioner", "plugin"}, "Colon-separated directories of plugins in other languages; searched before those of the system."},
	{"LOOM_PLUGIN_USER", "text", "", false, []string{"up", "seed", "provisioner", "plugin"}, "System user that unpacks plugin resources and runs plugins in other languages. Empty: nobody if Loom runs as root, else the user of Loom. With “root” plugins run as root, but nobody still unpacks archives."},
	{"LOOM_ALLOW_INSECURE_ENDPOINTS", "switch", "false", false, []string{"up", "web", "provisioner", "plugin"}, "Allow API URLs of clouds, and identity providers, without HTTPS, for tests."},
	{"LOOM_MOCK", "switch", "false", false, []string{"up", "provisioner", "plugin"}, "Offer the provider type “mock”, with simulated machines, for load tests."},
	{"LOOM_AUDIT_DAYS", "number", "400", false, []string{"up", "scheduler"}, "Days to keep the audit log; 0: forever."},
	{"LOOM_LOG_DAYS", "number", "90", false, []string{"up", "scheduler"}, "Days to keep task logs, hook deliveries and incidents; 0: forever."},
	{"LOOM_JOB_HOURS", "number", "24", false, []string{"up", "scheduler", "provisioner"}, "Hours to keep River's completed and canceled jobs; 0: forever."},
	{"LOOM_FAILED_JOB_DAYS", "number", "7", false, []string{"up", "scheduler", "provisioner"}, "Days to keep River's jobs of failed tasks; 0: forever."},
	{"LOOM_LOG_BYTES", "number", "10737418240", false, []string{"up", "scheduler"}, "Maximum bytes of task logs per tenant, newest first; 0: no limit."},
	{"LOOM_LOG_LEVEL", "text", "info", false, everywhere, "Minimum log level: debug, info, warn or error."},
	{"LOOM_LOG_FORMAT", "text", "auto", false, everywhere, "Log format: text, json, or auto for text on a terminal."},
}

// known are variables that other programs read.
var known = []string{"LOOM_URL", "LOOM_TOKEN", "LOOM_FAULT"}

// Values are the effective options with where each came from.
type Values struct {
	values  map[string]string
	sources map[string]string
}

// Load reads the options: from flags (by the name of the flag), else the environment,
// else LOOM_*_FILE, else the default. An unknown LOOM_* variable is an error that
// names the nearest known one.
func Load(flags map[string]string, environ []string) (*Values, error) {
	v := &Values{values: map[string]string{}, sources: map[string]string{}}
	env := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	for name := range env {
		if err := checkVariable(name); err != nil {
			return nil, err
		}
	}
	for _, o := range Options {
		value, source := o.Default, "default"
		if path := env[o.Name+"_FILE"]; path != "" {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("%s_FILE: %w", o.Name, err)
			}
			value, source = strings.TrimSpace(string(text)), o.Name+"_FILE"
		}
		if text, ok := env[o.Name]; ok {
			value, source = text, "environment"
		}
		if text, ok := flags[o.Flag()]; ok {
			value, source = text, "flag"
		}
		if err := o.check(value); err != nil {
			return nil, err
		}
		v.values[o.Name], v.sources[o.Name] = value, source
	}
	// Procfile runners set these two.
	v.fallback(env, "LOOM_DATABASE_URL", "DATABASE_URL", func(s string) string { return s })
	v.fallback(env, "LOOM_LISTEN_ADDR", "PORT", func(s string) string { return "0.0.0.0:" + s })
	return v, nil
}

func (v *Values) fallback(env map[string]string, name, other string, convert func(string) string) {
	if value := env[other]; value != "" && v.sources[name] == "default" {
		v.values[name], v.sources[name] = convert(value), other
	}
}

// Text returns a text option. An option that is not in the table is a programming
// error and panics.
func (v *Values) Text(name string) string {
	value, ok := v.values[name]
	if !ok {
		panic("config: no option " + name)
	}
	return value
}

// Number returns a number option.
func (v *Values) Number(name string) int {
	n, err := strconv.Atoi(v.Text(name))
	if err != nil {
		panic("config: " + name + " was not checked")
	}
	return n
}

// Duration returns a duration option.
func (v *Values) Duration(name string) time.Duration {
	d, err := time.ParseDuration(v.Text(name))
	if err != nil {
		panic("config: " + name + " was not checked")
	}
	return d
}

// Switch returns a switch.
func (v *Values) Switch(name string) bool { return v.Text(name) == "true" }

// Print lists the effective options with their source, secrets redacted.
func (v *Values) Print() string {
	var b strings.Builder
	for _, o := range Options {
		value := v.values[o.Name]
		// A URL with an “@” may hold a password, whether Loom takes it or not.
		if o.Secret && value != "" || strings.Contains(value, "://") && (strings.Contains(value, "@") || strings.Contains(value, "%40")) {
			value = loom.Redacted
		}
		fmt.Fprintf(&b, "%-30s %-30q %s\n", o.Name, value, v.sources[o.Name])
	}
	return b.String()
}

func (o Option) check(value string) error {
	switch o.Type {
	case "number":
		if n, err := strconv.Atoi(value); err != nil || n < 0 {
			return fmt.Errorf("%s is %q; it takes a whole number, such as %s", o.Name, value, o.Default)
		}
	case "duration":
		if d, err := time.ParseDuration(value); err != nil || d < 0 {
			return fmt.Errorf("%s is %q; it takes a duration, such as 90s or 30m", o.Name, value)
		}
	case "switch":
		if value != "true" && value != "false" {
			return fmt.Errorf("%s is %q; it takes true or false", o.Name, value)
		}
	}
	return nil
}

func checkVariable(name string) error {
	if !strings.HasPrefix(name, "LOOM_") || strings.HasPrefix(name, "LOOM_TEST_") || slices.Contains(known, name) {
		return nil
	}
	plain := strings.TrimSuffix(name, "_FILE")
	var names []string
	for _, o := range Options {
		if o.Name == name || o.Name == plain {
			return nil
		}
		names = append(names, o.Name)
	}
	return fmt.Errorf("there is no option %s; did you mean %s?", name, nearest(name, names))
}

// nearest returns the candidate with the smallest edit distance to word.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", 1<<30
	for _, c := range candidates {
		if d := loom.EditDistance(word, c, bestDistance); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}
