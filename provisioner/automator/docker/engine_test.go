package docker

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/automator/docker/enginetest"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// registry is one on the machine, which engines reach without a certificate. It holds an
// image that the engine no longer has.
const registry = `set -e
if [ -d /etc/containers/registries.conf.d ]; then # Podman has to be told
  printf '[[registry]]\nlocation = "127.0.0.1:5000"\ninsecure = true\n' >/etc/containers/registries.conf.d/test.conf
fi
mkdir -p /var/lib/registry
cat >/var/lib/registry.yml <<'END'
version: 0.1
storage: {filesystem: {rootdirectory: /var/lib/registry}}
http: {addr: "127.0.0.1:5000"}
END
setsid docker-registry serve /var/lib/registry.yml </dev/null >/var/log/registry.log 2>&1 &
for try in $(seq 100); do
  curl -fsS http://127.0.0.1:5000/v2/ >/dev/null 2>&1 && break
  sleep 0.1
done
docker tag site/web:1 127.0.0.1:5000/site/web:1
docker push -q 127.0.0.1:5000/site/web:1
docker rmi 127.0.0.1:5000/site/web:1 site/web:1 >/dev/null`

// users makes one who may ask sudo.
const users = `set -e
useradd -m -s /bin/sh tester
mkdir -p ~tester/.ssh && cp ~/.ssh/authorized_keys ~tester/.ssh/ && chown -R tester: ~tester/.ssh
echo 'tester ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/tester && chmod 0440 /etc/sudoers.d/tester`

// real is a machine with a real engine, reached as one user.
type real struct {
	*host
	address string
}

// read runs a command on the machine and gives what it printed.
func (r *real) read(command string) string {
	r.t.Helper()
	out, err := r.conn.Run(r.t.Context(), "look", remote.Command{Text: command, Root: true})
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(out.Stdout)
}

// page fetches from the machine, from outside.
func (r *real) page(path string) (string, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + r.address + path)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", answer.StatusCode, body)
	}
	return strings.TrimSpace(string(body)), err
}

// shows waits until a page holds a text: a container begins to serve after its start.
func (r *real) shows(path, text string) {
	r.t.Helper()
	var body string
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if body, err = r.page(path); err == nil && strings.Contains(body, text) {
			return
		}
	}
	r.t.Fatalf("%s shows %q, %v; want %q\n%s", path, body, err, text, r.read("docker ps -a; docker logs loom-web 2>&1"))
}

// id returns the recorded id of the container of an image, which has to be the engine's.
func (r *real) id(image, name string) string {
	r.t.Helper()
	recorded, _ := r.results[image].(map[string]any)
	id, _ := recorded["id"].(string)
	if got := r.read("docker inspect --format '{{.Id}}' " + name); id == "" || id != got {
		r.t.Fatalf("the id of %s is %q in results %v and %q at the engine", name, id, r.results, got)
	}
	return id
}

// checks runs a check of a service, "" for the one of a service without, and compares its exit
// status and the end of what it prints.
func (r *real) checks(service, command string, status int, says string) {
	r.t.Helper()
	text := New().CheckText(&loom.TaskSpec{Service: &loom.TaskService{Name: service}}, command)
	out, err := r.conn.Exec(r.t.Context(), remote.Command{Text: text, Root: true})
	if err != nil || out.Code != status || !strings.HasSuffix(strings.TrimSpace(out.Stdout), says) {
		r.t.Errorf("the check %q gives %d, %q, %v; want %d, %q", command, out.Code, out.Stdout, err, status, says)
	}
}

// TestRealDocker takes containers of the real engine through all that the automator does.
func TestRealDocker(t *testing.T) {
	t.Parallel()
	course(t, enginetest.Docker, true)
}

// TestRealPodman does the same with Podman's command of that name, but for links, which it
// does not have, and the daemon.
func TestRealPodman(t *testing.T) {
	t.Parallel()
	course(t, enginetest.Podman, false)
}

func course(t *testing.T, engine enginetest.Engine, docker bool) {
	yard := enginetest.Start(t, engine, 1)
	m := yard.Machines[0]
	yard.Image(m, "site/web:1", "One")
	root := yard.Dial(m, "root")
	for _, script := range []string{users, registry} {
		if _, err := root.Run(t.Context(), "set-up", remote.Command{Text: script}); err != nil {
			t.Fatal(err)
		}
	}
	yard.Image(m, "site/web:2", "Two")
	as := []string{"root"}
	if docker {
		as = append(as, "tester")
	}
	for _, user := range as {
		t.Run(user, func(t *testing.T) {
			life(t, &real{&host{t: t, conn: yard.Dial(m, user), results: map[string]any{}, sink: &sshtest.Record{}}, m.Address}, docker)
		})
	}
	if !docker {
		return
	}
	t.Run("down", func(t *testing.T) {
		stopped(t, &real{&host{t: t, conn: yard.Dial(m, "tester"), results: map[string]any{}, sink: &sshtest.Record{}}, m.Address}, engine)
	})
}

// life is that of two services on a machine.
func life(t *testing.T, r *real, docker bool) {
	const one, two = "127.0.0.1:5000/site/web:1", "site/web:2"
	if answer, err := New().Bootstrap(t.Context(), &loom.TaskSpec{}, r.conn, "", r.sink); err != nil || answer.Status != 0 {
		t.Fatalf("bootstrap gave %+v, %v", answer, err)
	}
	shared := "/srv/" + t.Name()
	web := map[string]string{"image_name": one, "publish_ports": "80,8081:80/tcp", "volumes": "/etc/hostname:/etc/machine-name," + shared + ":/var/www/shared",
		"environment_variables": `OTHER=a b, GREETING="# a=b, 'c' $HOME \n"`}

	// Its registry gives the image, which the machine does not have.
	r.must(loom.ActionInstall, "web", web)
	r.must(loom.ActionConfigure, "web", web)
	r.must(loom.ActionInitialize, "web", web)
	r.must(loom.ActionStart, "web", web)
	r.shows("/", "<h1>One</h1><p>This page comes from <code>"+m1+"</code>")
	r.shows(":8081/", "<h1>One</h1>")
	r.shows("/greeting", `# a=b, 'c' $HOME \n`)
	r.read("echo from outside >" + shared + "/note")
	r.shows("/shared/note", "from outside")
	if owner := r.read("stat -c %U " + shared); owner != r.conn.User() {
		t.Errorf("the directory of the volume belongs to %s", owner)
	}
	first := r.id(one, "loom-web")
	r.checks("web", "test -f /etc/machine-name && echo fine", 0, "fine")
	r.checks("web", "echo broken; exit 7", 7, "broken")
	r.checks("web", "", 0, "")
	if got := r.results["ports"]; !reflect.DeepEqual(got, []int{80, 8081}) {
		t.Errorf("ports are %v", got)
	}
	r.must(loom.ActionStart, "web", web)
	if r.id(one, "loom-web") != first {
		t.Error("a second start made another container")
	}

	// Another service: it knows the first one by its name, and may not have its port.
	other := map[string]string{"image_name": two, "links": "web", "command": `sh -c 'cat /etc/hosts >/var/www/shared/hosts; exec sleep 600'`, "volumes": shared + ":/var/www/shared", "restart_policy": "no"}
	r.must(loom.ActionInstall, "other", other)
	if text := r.sink.Text(); !strings.Contains(text, "warning: docker pull") {
		t.Errorf("an image without a registry is used without a warning:\n%s", text)
	}
	if answer := r.do(loom.ActionStart, "other", other); !docker {
		if answer.Status == 0 || !strings.HasSuffix(answer.Message, "unknown flag: --link") {
			t.Errorf("a link gave %+v", answer)
		}
		other["links"] = ""
		r.must(loom.ActionStart, "other", other)
	} else if answer.Status != 0 {
		t.Fatalf("a link gave %+v", answer)
	}
	inside := r.read("docker inspect --format '{{.NetworkSettings.IPAddress}}' loom-web")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		hosts := r.read("cat " + shared + "/hosts 2>/dev/null || true")
		if hosts = strings.Join(strings.Fields(hosts), " "); hosts != "" && (!docker || strings.Contains(hosts, inside+" web")) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the container of the other service does not know %s as web:\n%s", inside, hosts)
		}
	}
	if answer := r.do(loom.ActionStart, "third", map[string]string{"image_name": two, "publish_ports": "80"}); answer.Status == 0 || !strings.Contains(answer.Message, "port 80 of the machine is taken") {
		t.Errorf("a taken port gave %+v", answer)
	}
	r.read("docker kill loom-other")
	r.must(loom.ActionRemove, "other", other)

	// Two services may have one image.
	twin := map[string]string{"image_name": one, "publish_ports": "8082:80"}
	r.must(loom.ActionStart, "twin", twin)
	r.shows(":8082/", "<h1>One</h1>")
	for _, service := range []string{"web", "twin"} {
		fields := map[string]map[string]string{"web": web, "twin": twin}[service]
		r.must(loom.ActionStop, service, fields)
		r.must(loom.ActionStart, service, fields)
	}
	r.shows("/", "<h1>One</h1>")
	r.must(loom.ActionRemove, "twin", twin)
	r.must(loom.ActionStart, "web", web)

	// Stopped and started it is the same container, with other fields another one.
	r.must(loom.ActionStop, "web", web)
	r.checks("web", "", 1, "the container is exited")
	if body, err := r.page("/"); err == nil {
		t.Errorf("a stopped container serves %s", body)
	}
	if got := r.results["ports"]; !reflect.DeepEqual(got, []int{}) {
		t.Errorf("after the stop ports are %v", got)
	}
	r.must(loom.ActionStop, "web", web)
	r.must(loom.ActionStart, "web", web)
	r.shows("/", "<h1>One</h1>")
	if r.id(one, "loom-web") != first {
		t.Error("start after stop made another container")
	}
	web["environment_variables"] = "GREETING=other"
	r.must(loom.ActionStart, "web", web)
	r.shows("/greeting", "other")
	if r.id(one, "loom-web") == first {
		t.Error("other fields did not make another container")
	}

	// Another image takes the place of the one before, also where nothing was stopped.
	web["image_name"] = two
	r.must(loom.ActionInstall, "web", web)
	r.must(loom.ActionStart, "web", web)
	r.shows("/", "<h1>Two</h1>")
	r.id(two, "loom-web")
	if _, there := r.results[one]; there {
		t.Errorf("the image before is still recorded: %v", r.results)
	}
	if names := r.read("docker ps -a --format '{{.Names}}'"); names != "loom-web" {
		t.Errorf("containers: %s", names)
	}

	for _, c := range []struct{ name, image, command, want string }{
		{"an image that is nowhere", "127.0.0.1:5000/site/none:1", "", "docker pull 127.0.0.1:5000/site/none:1 exited with"},
		{"a program that the image lacks", two, "no-such-program", "starting loom-broken exited with 127"},
	} {
		fields := map[string]string{"image_name": c.image, "command": c.command}
		answer := r.do(loom.ActionInstall, "broken", fields)
		if answer.Status == 0 {
			answer = r.do(loom.ActionStart, "broken", fields)
		}
		if answer.Status == 0 || !strings.Contains(answer.Message, c.want) || answer.Retryable != nil {
			t.Errorf("%s gave %+v", c.name, answer)
		}
		r.must(loom.ActionRemove, "broken", fields)
	}

	talks(t, r, two)

	r.must(loom.ActionRemove, "web", web)
	r.must(loom.ActionRemove, "web", web)
	r.must(loom.ActionStop, "web", web)
	if names := r.read("docker ps -a --format '{{.Names}}'"); names != "" || !reflect.DeepEqual(r.results, map[string]any{"ports": []int{}}) {
		t.Errorf("left are the containers %q and the results %v", names, r.results)
	}
	r.read("docker rmi " + one)
}

// talks follows the log of a container over its stop and start.
func talks(t *testing.T, r *real, image string) {
	fields := map[string]string{"image_name": image, "command": `sh -c 'trap "exit 0" TERM; echo it is up; while :; do sleep 0.1; done'`}
	r.must(loom.ActionStart, "talker", fields)
	spec := &loom.TaskSpec{Service: &loom.TaskService{Name: "talker"}}
	ctx, end := context.WithCancel(t.Context())
	lines, over := make(chan string, 1000), make(chan struct{})
	go func() {
		defer close(over)
		_, _ = r.conn.Exec(ctx, remote.Command{Text: New().LogText(spec, 10, true), Root: true, Line: func(_, text string) { lines <- text }})
	}()
	up := func() {
		t.Helper()
		limit := time.After(time.Minute)
		for line := ""; line != "it is up"; { // Podman says something of its own
			select {
			case line = <-lines:
			case <-limit:
				t.Fatal("the container says nothing")
			}
		}
	}
	up()
	r.must(loom.ActionStop, "talker", fields)
	r.must(loom.ActionStart, "talker", fields)
	up()
	end()
	<-over
	if out := r.read(New().LogText(spec, 1, false)); out != "it is up" {
		t.Errorf("its last line is %q", out)
	}
	r.must(loom.ActionRemove, "talker", fields)
}

const m1 = "engine1"

// stopped shows an engine that is down, and what comes back with it.
func stopped(t *testing.T, r *real, engine enginetest.Engine) {
	web := map[string]string{"image_name": "site/web:2", "publish_ports": "80", "volumes": "/etc/hostname:/etc/machine-name"}
	idle := map[string]string{"image_name": "site/web:2"}
	r.must(loom.ActionStart, "web", web)
	r.must(loom.ActionStart, "idle", idle)
	r.must(loom.ActionStop, "idle", idle)
	r.shows("/", "<h1>Two</h1>")
	r.read(`kill "$(cat /run/docker.pid)"; while [ -e /run/docker.pid ]; do sleep 0.1; done`)
	answer, err := New().Bootstrap(t.Context(), &loom.TaskSpec{}, r.conn, "", r.sink)
	if err != nil || answer.Status == 0 || !strings.Contains(answer.Message, "Is the docker daemon running?") {
		t.Errorf("an engine that is down gave %+v, %v", answer, err)
	}
	if answer := r.do(loom.ActionStop, "web", web); answer.Status == 0 || !strings.Contains(answer.Message, "does not answer") {
		t.Errorf("a stop without an engine gave %+v", answer)
	}
	r.read("setsid " + engine.Command + " </dev/null >/var/log/again.log 2>&1 & until docker ps >/dev/null 2>&1; do sleep 0.1; done")
	r.shows("/", "<h1>Two</h1>")
	if names := r.read("docker ps --format '{{.Names}}'"); names != "loom-web" {
		t.Errorf("with the engine came the containers %s", names)
	}
	r.must(loom.ActionRemove, "web", web)
	r.must(loom.ActionRemove, "idle", idle)
}
