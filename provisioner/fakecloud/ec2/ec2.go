// Package ec2 is the Amazon EC2 of fake clouds: the calls of its query protocol that
// Loom makes. It checks signatures and remembers client tokens, as EC2 does.
package ec2

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"loom/provisioner/fakecloud"
)

// What the account has.
const (
	KeyID  = "AKIDEXAMPLE123456789"
	Secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	// NextKeyID and NextSecret are the access key after Rotate.
	NextKeyID  = "AKIDROTATED123456789"
	NextSecret = "n3xtXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	KeyPair    = "lab"
	Image      = "ami-0abc1234"
	// ImageSize is that of the image's root volume, in GB.
	ImageSize = 8
	// StoreImage has its root file system on the instance store.
	StoreImage = "ami-0store99"
	Size       = "t3.small"
	Group      = "default"
	GroupID    = "sg-0aaa1111"
	Subnet     = "subnet-0bbb2222"
)

// EC2 is the dialect.
type EC2 struct {
	cloud   *fakecloud.Cloud
	rotated atomic.Bool
	// PageSize is the most that a listing gives at once, 0 for all.
	PageSize int
	// PublicKey of the key pair, as in authorized_keys.
	PublicKey string
	mu        sync.Mutex
	tokens    map[string]remembered
}

type remembered struct{ id, parameters string }

// New makes the dialect of an account with one key pair, size, group and subnet.
func New() *EC2 { return &EC2{tokens: map[string]remembered{}} }

// Attach tells the cloud.
func (e *EC2) Attach(c *fakecloud.Cloud) { e.cloud = c }

// Operation is the form's Action.
func (*EC2) Operation(r *fakecloud.Request) string {
	if form := formOf(r); r.Method == http.MethodPost && r.URL.Path == "/" {
		return form.Get("Action")
	}
	return ""
}

func formOf(r *fakecloud.Request) url.Values {
	form, err := url.ParseQuery(string(r.Body))
	if err != nil {
		return url.Values{}
	}
	return form
}

// Rotate replaces the access key by NextKeyID and NextSecret.
func (e *EC2) Rotate() { e.rotated.Store(true) }

// Allowed checks the signature.
func (e *EC2) Allowed(r *fakecloud.Request) *fakecloud.Answer {
	code := ""
	known, secret := KeyID, Secret
	if e.rotated.Load() {
		known, secret = NextKeyID, NextSecret
	}
	switch id, ok := signed(r, secret); {
	case id == "":
		code = "MissingAuthenticationToken"
	case id != known:
		code = "AuthFailure"
	case !ok:
		code = "SignatureDoesNotMatch"
	default:
		return nil
	}
	refused := e.Refuse(http.StatusUnauthorized, code, "AWS was not able to validate the provided access credentials")
	return &refused
}

type failure struct {
	XMLName xml.Name `xml:"Response"`
	Code    string   `xml:"Errors>Error>Code"`
	Message string   `xml:"Errors>Error>Message"`
	Request string   `xml:"RequestID"`
}

// Refuse answers with a code and a message. EC2 has 503 where others have 429.
func (*EC2) Refuse(status int, code, message string) fakecloud.Answer {
	usual := map[int]string{401: "AuthFailure", 403: "UnauthorizedOperation", 404: "InvalidInstanceID.NotFound", 409: "IncorrectInstanceState",
		413: "RequestLimitExceeded", 429: "RequestLimitExceeded", 500: "InternalError", 503: "Unavailable"}
	if code == "" {
		code = usual[status]
	}
	if message == "" {
		message = "as the test wants it"
	}
	return answer(status, failure{Code: code, Message: message, Request: "ea966190-f9aa-478e-9ede-example"})
}

func answer(status int, body any) fakecloud.Answer {
	data, err := xml.Marshal(body)
	if err != nil {
		panic(err)
	}
	return fakecloud.Answer{Status: status, Type: "text/xml;charset=UTF-8", Body: append([]byte(xml.Header), data...)}
}

func (e *EC2) refuse(code, format string, args ...any) fakecloud.Answer {
	return e.Refuse(http.StatusBadRequest, code, fmt.Sprintf(format, args...))
}

// Do carries a call out.
func (e *EC2) Do(op string, r *fakecloud.Request) fakecloud.Answer {
	form := formOf(r)
	switch op {
	case "RunInstances":
		return e.run(r, form)
	case "DescribeInstances":
		return e.describe(form)
	case "TerminateInstances":
		return e.terminate(form)
	case "StartInstances", "RebootInstances":
		return e.power(op, form)
	case "GetConsoleOutput":
		return e.console(form)
	case "DescribeImages":
		return e.images(form)
	case "DescribeAvailabilityZones":
		return answer(200, body{Name: "DescribeAvailabilityZonesResponse", Inner: "<availabilityZoneInfo><item><zoneName>us-east-1a</zoneName></item></availabilityZoneInfo>"})
	case "DescribeRegions":
		return answer(200, body{Name: "DescribeRegionsResponse", Inner: "<regionInfo><item><regionName>us-east-1</regionName></item><item><regionName>eu-west-1</regionName></item></regionInfo>"})
	case "DescribeKeyPairs":
		for _, name := range list(form, "KeyName") {
			if name != KeyPair {
				return e.refuse("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", name)
			}
		}
		public := ""
		if form.Get("IncludePublicKey") == "true" {
			public = "<publicKey>" + e.PublicKey + "</publicKey>"
		}
		return answer(200, body{Name: op + "Response", Inner: "<keySet><item><keyName>" + KeyPair + "</keyName>" + public + "</item></keySet>"})
	case "DescribeSubnets":
		return e.known(op, list(form, "SubnetId"), Subnet, "InvalidSubnetID.NotFound", "subnetSet", "subnetId")
	case "DescribeSecurityGroups":
		if ids := list(form, "GroupId"); len(ids) > 0 {
			return e.known(op, ids, GroupID, "InvalidGroup.NotFound", "securityGroupInfo", "groupId")
		}
		return e.known(op, list(form, "GroupName"), Group, "InvalidGroup.NotFound", "securityGroupInfo", "groupName")
	case "DescribeInstanceTypes":
		for _, name := range list(form, "InstanceType") {
			if name != Size {
				return e.refuse("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
			}
		}
		return answer(200, body{Name: "DescribeInstanceTypesResponse", Inner: "<instanceTypeSet><item><instanceType>" + Size +
			"</instanceType><vCpuInfo><defaultVCpus>2</defaultVCpus></vCpuInfo><memoryInfo><sizeInMiB>2048</sizeInMiB></memoryInfo></item></instanceTypeSet>"})
	}
	return e.refuse("InvalidAction", "The action %s is not valid for this web service.", op)
}

// body is an answer whose inside is written by hand.
type body struct {
	Name, Inner string
}

// MarshalXML writes it.
func (b body) MarshalXML(enc *xml.Encoder, _ xml.StartElement) error {
	return enc.EncodeElement(struct {
		Space string `xml:"xmlns,attr"`
		Inner string `xml:",innerxml"`
	}{"http://ec2.amazonaws.com/doc/2016-11-15/", "<requestId>8f7724cf</requestId>" + b.Inner}, xml.StartElement{Name: xml.Name{Local: b.Name}})
}

// known answers for a kind of thing of which the account has one.
func (e *EC2) known(op string, wanted []string, has, code, set, element string) fakecloud.Answer {
	for _, name := range wanted {
		if name != has {
			return e.refuse(code, "The %s '%s' does not exist", element, name)
		}
	}
	return answer(200, body{Name: op + "Response", Inner: "<" + set + "><item><" + element + ">" + has + "</" + element + "></item></" + set + ">"})
}

func (e *EC2) images(form url.Values) fakecloud.Answer {
	var inner strings.Builder
	for _, id := range append(list(form, "ImageId"), map[bool][]string{true: {Image}}[form.Get("Owner.1") == "self"]...) {
		switch id {
		case Image:
			fmt.Fprintf(&inner, "<item><imageId>%s</imageId><name>debian-12</name><imageState>available</imageState><rootDeviceType>ebs</rootDeviceType><rootDeviceName>/dev/xvda</rootDeviceName>"+
				"<blockDeviceMapping><item><deviceName>/dev/xvda</deviceName><ebs><volumeSize>%d</volumeSize><volumeType>gp2</volumeType></ebs></item></blockDeviceMapping></item>", id, ImageSize)
		case StoreImage:
			fmt.Fprintf(&inner, "<item><imageId>%s</imageId><rootDeviceType>instance-store</rootDeviceType></item>", id)
		default:
			return e.refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
		}
	}
	return answer(200, body{Name: "DescribeImagesResponse", Inner: "<imagesSet>" + inner.String() + "</imagesSet>"})
}

// list reads Name.1, Name.2, …
func list(form url.Values, name string) (values []string) {
	for n := 1; form.Has(fmt.Sprint(name, ".", n)); n++ {
		values = append(values, form.Get(fmt.Sprint(name, ".", n)))
	}
	return values
}

// parameters is what a token is remembered with.
func parameters(form url.Values) string {
	rest := maps.Clone(form)
	delete(rest, "ClientToken")
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		fmt.Fprintf(&b, "%s=%q\n", name, rest[name])
	}
	return b.String()
}
