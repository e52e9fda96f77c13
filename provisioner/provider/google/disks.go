package google

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"google.golang.org/api/compute/v1"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

const (
	// rootSize and dataSize are those of disks where no field says so, in GB.
	rootSize = 10
	dataSize = "200"
	// largest disk, in GB.
	largest = 65536
	// mountOptions of data disks.
	mountOptions = "discard,defaults,noatime,nofail"
	// deviceName, with a number, is that of a data disk; the guest finds it below
	// /dev/disk/by-id.
	deviceName = "loom-data"
)

var diskTypes = map[string]string{"": "pd-standard", "standard": "pd-standard", "ssd": "pd-ssd", "balanced": "pd-balanced"}

// dataDisks returns the sizes of the data disks in GB.
func dataDisks(f cloud.Fields) ([]int64, error) {
	sizes := f.List("google_data_disk_size_gb")
	if len(sizes) == 0 {
		sizes = []string{dataSize}
	}
	var wanted []int64
	for _, text := range sizes {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil || size > largest {
			return nil, cloud.Errorf(cloud.Refused, "provider field google_data_disk_size_gb has %.50q; give whole numbers up to %d, separated by commas", text, largest)
		}
		if size > 0 {
			wanted = append(wanted, size)
		}
	}
	return wanted, nil
}

// named says where the data disks are mounted: /data, /data2, /data3 and so on.
func named(sizes []int64) []cloud.NamedDisk {
	var disks []cloud.NamedDisk
	for n := range sizes {
		mount := cloud.DataMount
		if n > 0 {
			mount += strconv.Itoa(n + 1)
		}
		disks = append(disks, cloud.NamedDisk{Device: fmt.Sprint("/dev/disk/by-id/google-", deviceName, n+1), Mount: mount, Options: mountOptions})
	}
	return disks
}

// diskNames returns the name of the root disk and of n data disks.
func diskNames(instance string, n int) []string {
	names := []string{instance}
	for i := range n {
		name := instance + "-data"
		if i > 0 {
			name += strconv.Itoa(i + 1)
		}
		names = append(names, name)
	}
	return names
}

// diskType is the path of a kind of disk.
func (d *driver) diskType(field string) (string, error) {
	kind, ok := diskTypes[d.Fields.Text(field)]
	if !ok {
		return "", cloud.Errorf(cloud.Refused, "provider field %s is %.50q; standard, ssd and balanced are known", field, d.Fields.Text(field))
	}
	return d.inZone("diskTypes", kind), nil
}

// disks says which disks an instance is made with. All go with it.
func (d *driver) disks(ctx context.Context, spec *loom.TaskSpec, name string, marks map[string]string) ([]*compute.AttachedDisk, error) {
	sizes, err := dataDisks(d.Fields)
	if err != nil {
		return nil, err
	}
	size, err := d.Fields.Number("google_root_disk_size_gb", rootSize, largest)
	if err != nil {
		return nil, err
	}
	rootType, err := d.diskType("google_root_disk_type")
	if err != nil {
		return nil, err
	}
	dataType, err := d.diskType("google_data_disk_type")
	if err != nil {
		return nil, err
	}
	names := diskNames(name, len(sizes))
	if last := names[len(names)-1]; !instanceName.MatchString(last) {
		return nil, cloud.Errorf(cloud.Refused, "host name %.100q is too long for the name of its disk %s, which may have 63 characters", spec.Hostname, last)
	}
	from, err := d.image(ctx, spec.Image)
	if err != nil {
		return nil, err
	}
	disks := []*compute.AttachedDisk{{Boot: true, AutoDelete: true, InitializeParams: &compute.AttachedDiskInitializeParams{
		DiskName: name, SourceImage: from.path, DiskSizeGb: max(int64(size), from.size), DiskType: rootType, Labels: marks,
	}}}
	for n, size := range sizes {
		disks = append(disks, &compute.AttachedDisk{AutoDelete: true, DeviceName: fmt.Sprint(deviceName, n+1),
			InitializeParams: &compute.AttachedDiskInitializeParams{DiskName: names[n+1], DiskSizeGb: size, DiskType: dataType, Labels: marks}})
	}
	return disks, nil
}

// ownDisk is the name of a disk that an instance was made with.
var ownDisk = regexp.MustCompile(`^-data[0-9]*$`)

// Cleanup removes the disks that outlived their instance: those with the node's
// key, and of those that an earlier system recorded the ones named after it. Disks
// that somebody attached stay.
func (d *driver) Cleanup(ctx context.Context) error {
	spec := d.Task
	var names []string
	id, results := cloud.ID(spec), cloud.Fields(spec.Results)
	for _, name := range results.List("disks") {
		if id != "" && instanceName.MatchString(name) && (name == id || len(name) > len(id) && name[:len(id)] == id && ownDisk.MatchString(name[len(id):])) {
			names = append(names, name)
		}
	}
	if spec.IdempotencyKey != "" {
		filter := fmt.Sprintf("labels.%s = %q", cloud.LabelKey, label(spec.IdempotencyKey))
		var found []string
		if err := d.Call(ctx, func(ctx context.Context) error {
			found = nil
			return d.api.Disks.List(d.project, d.zone).Filter(filter).Pages(ctx, func(page *compute.DiskList) error {
				for _, disk := range page.Items {
					found = append(found, disk.Name)
				}
				return nil
			})
		}); err != nil {
			return err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := d.removeDisk(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// removeDisk removes one disk and waits until it is gone, since the next machine
// of the node has one of the same name.
func (d *driver) removeDisk(ctx context.Context, name string) error {
	asked := false
	for waited := time.Duration(0); ; waited += d.Pace.Poll {
		err := d.Call(ctx, func(ctx context.Context) (err error) {
			if asked {
				_, err = d.api.Disks.Get(d.project, d.zone, name).Context(ctx).Do()
			} else {
				_, err = d.api.Disks.Delete(d.project, d.zone, name).Context(ctx).Do()
			}
			return err
		})
		switch {
		case cloud.Is(err, cloud.NotFound):
			return nil
		case cloud.Is(err, cloud.Busy):
		case err != nil:
			return err
		case !asked:
			d.Log("disk %s is being removed", name)
			asked = true
		}
		if waited >= d.Pace.Ready {
			return cloud.Errorf(cloud.Broken, "disk %s was not gone within %d s", name, int(d.Pace.Ready.Seconds()))
		}
		if err := d.Pace.Sleep(ctx, d.Pace.Poll); err != nil {
			return err
		}
	}
}
