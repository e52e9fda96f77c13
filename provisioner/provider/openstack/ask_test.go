package openstack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/stack"
	"loom/provisioner/provider"
	"loom/provisioner/remote/sshtest"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	l.Fields["availability_zone"] = stack.Zone
	l.Fields["network_ids"], l.Fields["floating_ip"], l.Fields["floating_network"] = stack.LabNet, true, stack.ExternalName
	probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call())
	if err != nil || !probe.OK || len(probe.Checks) != 10 || len(probe.Flavors) != 2 || probe.Flavors[0] != (loom.ProbeFlavor{ID: stack.Flavor, Name: "small", VCPU: 1, RAM: 2048}) ||
		!slices.Equal(probe.Images, []loom.ProbeImage{{ID: stack.Image, Name: "debian-12"}}) {
		t.Errorf("probe gave %+v, %v", probe, err)
	}
	for field, want := range map[string]string{"openstack_region": "RegionOne", "ssh_keypair": "other lab", "availability_zone": stack.Zone, "network_ids": stack.LabNet, "security_groups": "default", "floating_network": stack.ExternalName} {
		var ids []string
		for _, choice := range probe.Choices[field] {
			ids = append(ids, choice.ID)
		}
		if !strings.Contains(strings.Join(ids, " "), want) {
			t.Errorf("choices of %s: %+v", field, probe.Choices[field])
		}
	}
	for field, c := range map[string]struct{ value, check string }{
		"api_password": {"wrong-password", "sign in"}, "ssh_keypair": {"absent", "key pair"}, "ssh_key_resource": {"absent", "key pair"},
		"security_groups": {"default, absent", "security groups"}, "network_ids": {"absent", "network"}, "floating_network": {"absent", "network"},
		"openstack_region": {"RegionNine", "region"}, "availability_zone": {"mars", "availability zone"}, "endpoint_url": {"nonsense", "settings"},
	} {
		call := l.Call()
		call.Provider.Fields[field] = c.value
		probe, err := l.Provider.(provider.Prober).Probe(l.Context(), call)
		failed := ""
		for _, check := range probe.Checks {
			if !check.OK {
				failed += check.Name
			}
		}
		if err != nil || probe.OK || failed != c.check || strings.Contains(fmt.Sprint(probe), "wrong-password") {
			t.Errorf("%s %q: %+v, %v", field, c.value, probe.Checks, err)
		}
	}
	said := func() string {
		t.Helper()
		probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call())
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%t ", probe.OK)
		for _, check := range probe.Checks {
			text += fmt.Sprintf("%s %t: %s\n", check.Name, check.OK, check.Message)
		}
		return text
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(l.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	foreign := sshtest.NewKey(t, "ed25519", "").Authorized
	for n, c := range []struct{ public, fingerprint, says string }{
		{foreign, "", "key pair false: Nova has the key pair “lab”, but its key is not that of the private key “lab-key”, whose fingerprint is " + ssh.FingerprintSHA256(key)},
		{"", ssh.FingerprintLegacyMD5(key), "key pair true: Nova has the key pair “lab”, which fits"}, {"", ssh.FingerprintSHA256(key), "which fits"},
		{"", strings.Repeat("00:", 15) + "00", "key pair false"}, {"", "", "key pair true: Nova has the key pair “lab”. It does not tell"},
	} {
		dialect.PublicKey, dialect.Fingerprint = c.public, c.fingerprint
		if text := said(); !strings.Contains(text, c.says) {
			t.Errorf("%d: %s", n, text)
		}
	}
	dialect.PublicKey = l.PublicKey
	l.Fields["availability_zone"] = stack.Dark + ":host1"
	if text := said(); !strings.Contains(text, "availability zone false: The availability zone “dark” (provider field availability_zone) is switched off") {
		t.Error(text)
	}
	l.Fields["availability_zone"] = ""
	dialect.Cores = [2]int{20, 20}
	if text := said(); !strings.Contains(text, "quota false: The project's quota is used up: 20 of 20 cores;") {
		t.Error(text)
	}
	l.Cloud.Inject(fakecloud.Fault{Op: stack.Limits, Status: 403, Message: "Policy doesn't allow limits"})
	if text := said(); !strings.Contains(text, "quota true: It is not known: Policy doesn't allow limits.") {
		t.Error(text)
	}
}
