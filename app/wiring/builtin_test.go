package wiring

import (
	"slices"
	"strings"
	"testing"

	"loom/app/config"
	"loom/app/loom"
	"loom/provisioner/provider"
)

func builtInWith(t *testing.T, options ...string) []provider.Provider {
	t.Helper()
	values, err := config.Load(nil, options)
	if err != nil {
		t.Fatal(err)
	}
	return (&Environment{Values: values}).builtInProviders()
}

func TestEveryProviderTypeIsThereOnce(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range builtInWith(t) {
		names = append(names, p.Type().Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "aws digitalocean google joyent openstack rackspace static" {
		t.Errorf("provider types: %s", got)
	}
}

// The one option of clouds reaches all of them.
func TestCloudsWantHTTPS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options []string
		refused bool
	}{{nil, true}, {[]string{"LOOM_ALLOW_INSECURE_ENDPOINTS=true"}, false}} {
		for _, p := range builtInWith(t, c.options...) {
			prober, ok := p.(provider.Prober)
			if _, hasAPI := p.Type().Parameters["admin"].Fields[provider.EndpointField]; !ok || !hasAPI {
				continue
			}
			probe, _ := prober.Probe(t.Context(), &loom.ProviderCall{Provider: loom.Provider{Fields: map[string]any{
				provider.EndpointField: "http://127.0.0.1:1", "api_user": "user", "api_password": "word",
			}}})
			refused := slices.ContainsFunc(probe.Checks, func(c loom.ProbeCheck) bool { return strings.Contains(c.Message, "LOOM_ALLOW_INSECURE_ENDPOINTS") })
			if refused != c.refused {
				t.Errorf("%s with %v: %+v", p.Type().Name, c.options, probe)
			}
		}
	}
}
