package local

import (
	"fmt"
	"regexp"
	"strings"

	"loom/app/loom"
)

// limits are what a machine, or all of a tenant, may use at most.
type limits = loom.LocalLimits

// limited reports whether there is something to limit for a controller.
func limited(l limits, controller string) bool {
	switch controller {
	case "memory":
		return l.Memory > 0
	case "pids":
		return l.Pids > 0
	}
	return l.CPU > 0 || l.Cores > 0
}

// minDisk is what a machine writes by itself, with some room.
const minDisk = loom.MinLocalDisk

// parseFlavor reads a flavor; every part may be absent.
func parseFlavor(flavor string) (limits, error) { return loom.ParseLocalFlavor(flavor) }

// image is a parsed image text: a Debian suite and packages beyond the base list.
type image struct {
	Suite    string
	Packages []string // sorted, each once, none of the base list
}

// DefaultImage is the image of a machine whose image type names none.
const DefaultImage = "bookworm"

// basePackages are on every machine: what Loom's own steps, the automators and
// the usual install scripts need.
var basePackages = []string{"openssh-server", "iproute2", "procps", "sudo", "ca-certificates", "curl", "python3-minimal"}

var (
	suiteRule   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}$`)
	packageRule = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,100}$`)
)

// parseImage reads "<suite>[:<package>,…]". The result is normalized, so that
// two texts with the same meaning share a base root.
func parseImage(text string) (image, error) {
	suite, list, _ := strings.Cut(strings.TrimSpace(text), ":")
	if suite = strings.TrimSpace(suite); suite == "" {
		suite = DefaultImage
	}
	if !suiteRule.MatchString(suite) {
		return image{}, fmt.Errorf("“%s” is no name of a Debian suite such as bookworm", suite)
	}
	im := image{Suite: suite}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !packageRule.MatchString(name) {
			return image{}, fmt.Errorf("“%s” is no name of a Debian package", name)
		}
		im.Packages = append(im.Packages, name)
	}
	im.Packages = normalize(im.Packages)
	return im, nil
}

// String returns the normalized text.
func (im image) String() string {
	if len(im.Packages) == 0 {
		return im.Suite
	}
	return im.Suite + ":" + strings.Join(im.Packages, ",")
}
