package static

import (
	"strings"
	"testing"
)

func TestParseHosts(t *testing.T) {
	t.Parallel()
	hosts, err := parseHosts("\n 192.0.2.1 \n# old\nnode.lab.example:2222 flavor=a image=b user=ops bind=10.0.0.1\n[2001:db8::1]:22\r\n2001:db8::2\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []host{
		{address: "192.0.2.1", port: 22},
		{address: "node.lab.example", port: 2222, flavor: "a", image: "b", user: "ops", bind: "10.0.0.1"},
		{address: "2001:db8::1", port: 22}, {address: "2001:db8::2", port: 22},
	}
	if len(hosts) != len(want) {
		t.Fatalf("read %+v", hosts)
	}
	for i, h := range hosts {
		if h != want[i] {
			t.Errorf("host %d is %+v, not %+v", i, h, want[i])
		}
		if again, err := parseAddress(h.id()); err != nil || again.address != h.address || again.port != h.port {
			t.Errorf("the id %s reads as %+v, %v", h.id(), again, err)
		}
	}
}

func TestParseHostsRefuses(t *testing.T) {
	t.Parallel()
	for text, part := range map[string]string{
		"a b":                          "line 1 of hosts: \"b\" is no key=value",
		"\n-x":                         "line 2 of hosts: \"-x\" is no address",
		"host:0":                       "port",
		"host:99999":                   "port",
		"host:":                        "port",
		"[nonsense]:22":                "no address",
		"192.0.2.1 bind=name":          "bind",
		"192.0.2.1 size=3":             "unknown",
		"192.0.2.1 flavor=":            "key=value",
		"192.0.2.1\nx\n192.0.2.1:22":   "on line 1 already",
		"host;rm":                      "no address",
		"$(id)":                        "no address",
		strings.Repeat("x", 300) + ".": "no address",
	} {
		if hosts, err := parseHosts(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q gave %v, %v", text, hosts, err)
		}
	}
}

func FuzzParseHosts(f *testing.F) {
	f.Add("192.0.2.1:22 flavor=a\n[::1]:2 bind=::1")
	f.Fuzz(func(t *testing.T, text string) {
		hosts, err := parseHosts(text)
		if err != nil {
			return
		}
		for _, h := range hosts {
			if again, err := parseAddress(h.id()); err != nil || again.id() != h.id() {
				t.Errorf("the id %q of %q reads as %+v, %v", h.id(), text, again, err)
			}
		}
	})
}
