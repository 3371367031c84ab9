// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/client"
)

// InvalidationPeriod is the time between two looks at whether images behind
// parameters have been deprecated.
const InvalidationPeriod = 30 * time.Minute

// EC2 is the part of EC2 that knows images.
type EC2 interface {
	DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
}

// Config is what Images work with. All fields are required.
type Config struct {
	EC2        EC2
	SSM        client.SSM
	Kubernetes func() string // version of the cluster, such as "1.33"
	Refresh    time.Duration // how long an answer is believed
	Clock      clock.PassiveClock
}

// Images finds the images of node classes. It may be used concurrently.
type Images struct {
	config     Config
	parameters parameters

	asking singleflight.Group
	mu     sync.Mutex
	known  map[apitypes.UID]answer
}

// answer is what a node class selected.
type answer struct {
	generation int64
	kubernetes string
	until      time.Time
	images     []awsv1.AMI
}

// New returns Images that know nothing yet.
func New(config Config) *Images {
	return &Images{
		config: config, parameters: parameters{ssm: config.SSM, clock: config.Clock}, known: map[apitypes.UID]answer{},
	}
}

// List returns the value for the class's status.amis; nothing if its terms
// select no image. Answers are remembered for Config.Refresh, unless the
// class's spec or the cluster's version changes. The caller owns the result. An
// *UnsupportedAliasError is final; after any other error the status stays.
func (i *Images) List(ctx context.Context, class *awsv1.EC2NodeClass) ([]awsv1.AMI, error) {
	kubernetes := i.config.Kubernetes()
	if known, ok := i.lookup(class, kubernetes); ok {
		return known, nil
	}
	key := fmt.Sprintf("%s/%d/%s", class.UID, class.Generation, kubernetes)
	found, err, _ := i.asking.Do(key, func() (any, error) {
		images, err := i.find(ctx, class, kubernetes)
		if err == nil {
			i.keep(class, kubernetes, images)
		}
		return images, err
	})
	if err != nil {
		return nil, fmt.Errorf("images of EC2NodeClass %s: %w", class.Name, err)
	}
	return clone(found.([]awsv1.AMI)), nil
}

func clone(images []awsv1.AMI) []awsv1.AMI {
	var out []awsv1.AMI
	for i := range images {
		out = append(out, *images[i].DeepCopy())
	}
	return out
}

func (i *Images) lookup(class *awsv1.EC2NodeClass, kubernetes string) ([]awsv1.AMI, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known, ok := i.known[class.UID]
	if !ok || known.generation != class.Generation || known.kubernetes != kubernetes || !known.until.After(i.config.Clock.Now()) {
		return nil, false
	}
	return clone(known.images), true
}

func (i *Images) keep(class *awsv1.EC2NodeClass, kubernetes string, images []awsv1.AMI) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.config.Clock.Now()
	for uid, a := range i.known {
		if !a.until.After(now) {
			delete(i.known, uid)
		}
	}
	i.known[class.UID] = answer{class.Generation, kubernetes, now.Add(i.config.Refresh), images}
}

// find asks AWS.
func (i *Images) find(ctx context.Context, class *awsv1.EC2NodeClass, kubernetes string) ([]awsv1.AMI, error) {
	ids, uses, err := i.named(ctx, class, kubernetes)
	if err != nil {
		return nil, err
	}
	terms := class.Spec.AMISelectorTerms
	if uses != nil {
		terms = nil // an alias stands alone
	}
	found := map[string]types.Image{}
	for _, q := range queries(ids, terms) {
		images, err := i.describe(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, image := range images {
			found[aws.ToString(image.ImageId)] = image
		}
	}
	var all []candidate
	for id, image := range found {
		all = append(all, candidates(&image, uses[id], i.config.Clock.Now())...)
	}
	return choose(all), nil
}

func (i *Images) describe(ctx context.Context, q *ec2.DescribeImagesInput) ([]types.Image, error) {
	var out []types.Image
	for pages := ec2.NewDescribeImagesPaginator(i.config.EC2, q); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("describe images: %w", err)
		}
		out = append(out, page.Images...)
	}
	return out, nil
}

// named returns the IDs that the class's terms and the parameters behind them
// name. With an alias, uses has those of each image; otherwise it is nil.
func (i *Images) named(ctx context.Context, class *awsv1.EC2NodeClass, kubernetes string) (ids []string, uses map[string][][]corev1.NodeSelectorRequirement, err error) {
	if alias, ok := class.Alias(); ok {
		return i.published(ctx, alias, kubernetes)
	}
	for _, term := range class.Spec.AMISelectorTerms {
		id := term.ID
		if id == "" && term.SSMParameter != "" {
			if id, err = i.own(ctx, term.SSMParameter); err != nil {
				return nil, nil, err
			}
		}
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil, nil
}

// published returns the images of an alias with their uses. Parameters that do
// not exist are passed over.
func (i *Images) published(ctx context.Context, alias awsv1.Alias, kubernetes string) (ids []string, uses map[string][][]corev1.NodeSelectorRequirement, err error) {
	parameters, err := Parameters(alias, kubernetes)
	if err != nil {
		return nil, nil, err
	}
	uses = map[string][][]corev1.NodeSelectorRequirement{}
	for _, p := range parameters {
		id, err := i.parameters.get(ctx, p.Name, publishedTTL, p.Mutable)
		if err != nil {
			return nil, nil, err
		}
		if id == "" {
			continue
		}
		if uses[id] == nil {
			ids = append(ids, id)
		}
		uses[id] = append(uses[id], p.Uses...)
	}
	if len(ids) == 0 {
		return nil, nil, fmt.Errorf("failed to discover any AMIs for alias (alias=%s): none of its SSM parameters exists; "+
			"check that this version was released for Kubernetes %s and in this region", Text(alias), kubernetes)
	}
	return ids, uses, nil
}

// own returns the image behind a parameter of the user's, or "".
func (i *Images) own(ctx context.Context, name string) (string, error) {
	id, err := i.parameters.get(ctx, name, ownTTL, true)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(id, "ami-") {
		log.FromContext(ctx).Info("ignoring an SSM parameter that holds no image ID", "parameter", name, "value", id)
		return "", nil
	}
	return id, nil
}

// Invalidate forgets parameters that follow releases and still have an image
// that was deprecated, so that they are asked for again.
func (i *Images) Invalidate(ctx context.Context) error {
	ids := slices.DeleteFunc(i.parameters.mutable(), func(id string) bool { return !strings.HasPrefix(id, "ami-") })
	if len(ids) == 0 {
		return nil
	}
	images, err := i.describe(ctx, query(nil, filter("image-id", ids...)))
	if err != nil {
		return err
	}
	now := i.config.Clock.Now()
	var deprecated []string
	for _, image := range images {
		if ends := parse(image.DeprecationTime); !ends.IsZero() && !ends.After(now) {
			deprecated = append(deprecated, aws.ToString(image.ImageId))
		}
	}
	if names := i.parameters.drop(deprecated); len(names) > 0 {
		log.FromContext(ctx).Info("asking again for SSM parameters whose image was deprecated", "parameters", names)
	}
	return nil
}
