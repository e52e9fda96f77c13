package wire

import (
	"strconv"

	"loom/app/lenient"
	"loom/app/lifecycle"
	"loom/app/loom"
)

// maxMillis is the last moment that the database and every clock can hold: the
// end of the year 9999.
const maxMillis = 253_402_300_799_999

// ReadMillis reads a time in milliseconds since 1970 as a query writes it; ok is
// false for anything else, and for times outside the years 1970 to 9999.
func ReadMillis(text string) (int64, bool) {
	millis, err := strconv.ParseInt(text, 10, 64)
	return millis, err == nil && millis >= 0 && millis <= maxMillis
}

// ReadDelete reads the optional body of a delete: provider fields, and whether a
// running operation is to be aborted first. Invalid.
func ReadDelete(body []byte) (lifecycle.DeleteInput, error) {
	if Empty(body) {
		return lifecycle.DeleteInput{}, nil
	}
	o, err := lenient.Read(body)
	if err != nil {
		return lifecycle.DeleteInput{}, err
	}
	return lifecycle.DeleteInput{ProviderFields: providerFields(o), Abort: o.Bool("abort")}, o.Err()
}

// ReadConfigure reads a change of a cluster's config, and the provider fields that
// come with it. Services restart unless it says otherwise. Invalid; that exactly
// one way to give the config is used is for the use case to say.
func ReadConfigure(body []byte) (lifecycle.ConfigureInput, map[string]any, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return lifecycle.ConfigureInput{}, nil, err
	}
	in := readConfigure(o)
	return in, providerFields(o), o.Err()
}

func readConfigure(o *lenient.Object) lifecycle.ConfigureInput {
	in := lifecycle.ConfigureInput{
		Config: o.FreeObject("config"), ConfigPatch: o.FreeObject("configPatch"), Revision: o.IntPtr("revision"), Restart: true,
	}
	if restart := o.BoolPtr("restart"); restart != nil {
		in.Restart = *restart
	}
	return in
}

// ReadServices reads a request to add services, and the provider fields that come
// with it. Invalid; that the list is not empty is for the use case to say, which
// first looks for the cluster.
func ReadServices(body []byte) ([]string, map[string]any, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return nil, nil, err
	}
	if !o.Has("services") {
		o.Fail("services", "Name the services to add.")
	}
	refuseUndo(o)
	return o.Texts("services"), providerFields(o), o.Err()
}

// refuseUndo refuses what no operation does yet, rather than passing over it.
func refuseUndo(o *lenient.Object) {
	switch o.Text("onFailure") {
	case "", loom.OnFailureKeep:
	case loom.OnFailureUndo:
		o.Fail("onFailure", "A failed operation cannot be undone by itself yet; leave this out.")
	default:
		o.Fail("onFailure", "On failure is “keep”.")
	}
}

// readLive reads what all requests for previews of changes to a cluster share,
// and then what their kind has.
func readLive(o, request *lenient.Object, in *lifecycle.PreviewInput) {
	id, ok := loom.ParseClusterID(o.Text("clusterId"))
	if !ok {
		o.Fail("clusterId", "Name the cluster, such as “00000042”.")
	}
	in.Cluster, in.ProviderFields = id, providerFields(request)
	switch in.Kind {
	case loom.PreviewStart, loom.PreviewStop, loom.PreviewRestart:
		in.Service = o.Text("service")
	case loom.PreviewAddServices:
		in.Services = request.Texts("services")
		refuseUndo(request)
	case loom.PreviewConfigure:
		configure := readConfigure(request)
		in.Configure = &configure
	case loom.PreviewDelete:
		in.Abort = request.Bool("abort")
	}
}
