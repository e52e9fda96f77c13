package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// container is what the fields of an action ask for.
type container struct {
	Image       string   `json:"image"`
	Environment []string `json:"environment"`
	Links       []string `json:"links"`
	Volumes     []volume `json:"volumes"`
	Ports       []port   `json:"ports"`
	Command     string   `json:"command"`
	Restart     string   `json:"restart"`
}

// volume is a directory of the machine and where the container sees it.
type volume struct {
	Host      string `json:"host"`
	Container string `json:"container"`
}

// port is a port of the machine and the container's behind it, which may name a
// protocol ("53/udp").
type port struct {
	Host      int    `json:"host"`
	Container string `json:"container"`
}

var (
	imageName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)
	variableName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	linkName      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*(:[A-Za-z0-9][A-Za-z0-9_.-]*)?$`)
	containerPort = regexp.MustCompile(`^[0-9]{1,5}(/(tcp|udp|sctp))?$`)
)

// parse reads the fields of an action. The error names the field and the remedy.
func parse(fields map[string]string) (container, error) {
	c := container{Image: strings.Join(strings.Fields(fields["image_name"]), ""), Command: strings.TrimSpace(fields["command"]),
		Restart: strings.TrimSpace(fields["restart_policy"])}
	switch {
	case c.Image == "":
		return c, fmt.Errorf("field “image_name” is empty; name the image as [repository/]name[:tag]")
	case !imageName.MatchString(c.Image):
		return c, fmt.Errorf("field “image_name” is %.200q; name the image as [repository/]name[:tag]", c.Image)
	}
	switch c.Restart {
	case "":
		c.Restart = "unless-stopped"
	case "no", "always", "unless-stopped":
	default:
		return c, fmt.Errorf("field “restart_policy” is %.100q; give no, always or unless-stopped", c.Restart)
	}
	var err error
	if c.Environment, err = variables(fields["environment_variables"]); err != nil {
		return c, err
	}
	for _, link := range list(fields["links"]) {
		if !linkName.MatchString(link) {
			return c, fmt.Errorf("field “links” has %.100q; give container[:alias], separated by commas", link)
		}
		c.Links = append(c.Links, link)
	}
	for _, item := range list(fields["volumes"]) {
		host, inside, ok := strings.Cut(item, ":")
		if !ok || !path.IsAbs(host) || !path.IsAbs(inside) {
			return c, fmt.Errorf("field “volumes” has %.200q; give two absolute paths as host:container, separated by commas", item)
		}
		c.Volumes = append(c.Volumes, volume{path.Clean(host), inside})
	}
	for _, item := range list(fields["publish_ports"]) {
		p, err := parsePort(item)
		if err != nil {
			return c, err
		}
		c.Ports = append(c.Ports, p)
	}
	return c, nil
}

func parsePort(item string) (port, error) {
	host, inside, both := strings.Cut(item, ":")
	if !both {
		inside = host
		host, _, _ = strings.Cut(host, "/")
	}
	number, err := strconv.Atoi(host)
	if err != nil || number < 1 || number > 65535 || !containerPort.MatchString(inside) {
		return port{}, fmt.Errorf("field “publish_ports” has %.100q; give host:container, or one number for both, separated by commas", item)
	}
	return port{number, inside}, nil
}

// list splits at commas and leaves out what is empty.
func list(text string) []string {
	var items []string
	for _, item := range strings.Split(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// variables reads NAME=value pairs, separated by commas; a comma within quotes
// belongs to the value, and the quotes themselves do not.
func variables(text string) ([]string, error) {
	var items []string
	var item strings.Builder
	var quote rune
	add := func() error {
		pair := strings.TrimSpace(item.String())
		item.Reset()
		if pair == "" {
			return nil
		}
		name, value, ok := strings.Cut(pair, "=")
		if name = strings.TrimSpace(name); !ok || !variableName.MatchString(name) {
			// The value may be a secret.
			return fmt.Errorf("field “environment_variables” has an entry named %.100q; give NAME=value, separated by commas", name)
		}
		if strings.ContainsAny(value, "\n\r\x00") {
			return fmt.Errorf("the value of %s in “environment_variables” has several lines; a container’s variable has one", name)
		}
		items = append(items, name+"="+value)
		return nil
	}
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			item.WriteRune(r)
		case r == '"' || r == '\'':
			quote = r
		case r == ',':
			if err := add(); err != nil {
				return nil, err
			}
		default:
			item.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("field “environment_variables” has an opening %c without its end", quote)
	}
	return items, add()
}

// sum tells containers that were made from other fields apart.
func (c container) sum() (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("sum up a container: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// hostPorts are the ports of the machine that the container takes.
func (c container) hostPorts() []int {
	ports := make([]int, len(c.Ports))
	for i, p := range c.Ports {
		ports[i] = p.Host
	}
	return ports
}
