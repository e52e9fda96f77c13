//go:build e2e

package cli

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"

	"loom/app/api/wire"
)

// TestFirstClusterAcrossProcesses runs the script that users are shown against
// separate processes, two of them provisioners on one host with one data directory,
// and kills one of these with kill -9 in the middle of the create, for good.
func TestFirstClusterAcrossProcesses(t *testing.T) {
	t.Parallel()
	p := newProcfile(t)
	p.background("provisioner")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "../../docs/first-cluster.sh", "6")
	cmd.Env = append(p.env, "LOOM_URL="+p.url, "LOOM_TOKEN="+p.token("demo", "user", "clusters:write"))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var clusters []wire.Cluster
	p.eventually("the cluster of the script", func() error {
		if p.user.call("GET", "/v2/clusters", nil, &clusters); len(clusters) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	p.inTheMiddle(clusters[0].ID, 4)
	p.provisioner.kill(t, syscall.SIGKILL)
	p.provisioner.waitEnd(t)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("first-cluster.sh: %v\n%s", err, out.Bytes())
	}
	interrupted := 0
	for _, task := range p.user.tasks(clusters[0].ID, 1) {
		interrupted += len(task.Attempts) - 1
	}
	t.Logf("%d tries were interrupted\n%s", interrupted, out.Bytes())
	p.noMachines()
}
