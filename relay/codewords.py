"""The words of pairing codes and of check words: 1,296 of plain English, so that three of them are 31 bits. PURE.

Picked by hand for this product and free of any licence. No two are one slip of a finger apart, no two sound alike to
Metaphone, no two begin with the same four letters, none is spelled in two ways on two sides of an ocean, and none is
rude; a test holds the list to that. Their order is part of the check words: words are never moved, nor taken out.
"""

from __future__ import annotations

_LISTED = """
abacus ability academy accent account acorn acrobat action actor adapter address admiral adobe advance
advice aerial agency agile aircraft airport airship alarm album alchemy algebra alley almanac almond alpaca
alphabet alpine altitude amateur amber ambition amethyst amulet anchor angle animal annual answer antenna
anthem antler anvil anybody apart aperture apology appear apple apricot apron aquarium arcade archer arctic
arena argument armchair aroma artist ashore aspect asphalt assembly asteroid athlete atlas atom attic auburn
audience author autumn avenue average avocado awake award azure baboon backpack badger bagel baggage bakery
balance balcony ballad bamboo banana banjo banker banquet barber bargain barley basil basket bassoon battery
bazaar beacon bedroom beehive beetle before belief bench benefit bicycle billiard biology birch birthday
blanket blazer blender blizzard blossom bobcat bonfire bonnet bonus border borrow boulder boxer bracelet
branch bravery breeze brick bridge bright broccoli bronze brother brown bubble bucket budget buffalo bugle
bulldog bumper bundle bungalow burger butcher butler button buyer cabbage cabin cable cactus calcium
calendar calm camera campfire canary candle canoe canyon capital captain caramel cardinal cargo caribou
carnival carpet carrot cascade cashew castle catalog catfish caution ceiling celery cement century ceramic
chalk champion chapter chariot cheddar cheese chemist cherry chestnut chicken chief chimney chipmunk chorus
chuckle cinema cinnamon circle citizen citrus civic clarinet classic clever client cliff climate clinic
clock closet cloth cloud cluster coast cobalt cobbler cobra coconut coffee collar colony column comedy
comfort compass concert condor copper coral corner cosmic cotton cougar couple cousin cowboy coyote cradle
crane crater crayon cream credit crescent cricket crimson crisp critic crocus cruise crystal cubic cuckoo
cucumber cupboard cupcake curfew custom cutlery cyclone cygnet cymbal daffodil dairy damson dancer daring
darkroom dawn decade decimal deck decorate defend delight denim desert design detail devote dewdrop diagram
dialect diamond diesel digital dignity dinner diploma direct discover dish distance diver doctor document
dolphin domain donkey dormouse dosage dove draft dragon drama drawer dress drizzle drummer duchess duckling
dynamic eager eagle earring earth eastern echo eclipse ecology economy edge editor eggplant elastic elbow
electric elegant element elephant elevator elite embassy embrace emerald emperor empire empty enable enamel
encore energy engine engrave enigma enjoy envelope epic episode equator errand escape espresso essay estate
eternal evening exact example excite exotic expand expert explore eyebrow eyelash fabric facade faithful
falcon family famous fancy fantasy farmer father faucet fellow fennel ferry fertile festival fiction fiddle
figure filter finger finish flagpole flamingo flannel flask flicker flight flint floor florist flower fluffy
foam fodder foggy folk football forest forget formal fortune forum fossil fountain fragile freckle freedom
fresh friend fringe frog frontier frozen furnace gadget galaxy gallop game garage garden garlic garment
garnet gateway gazebo gecko gemstone general genius gentle geology geranium giant gibbon giraffe girder
glacier gladly glass glider glimpse globe gnome golden goose gopher gourmet graceful grammar grape gravel
grizzly grocery growth guide guitar gymnast habitat haddock hairpin hallway hammer hamster handsome happen
hardware harmony harness harp harvest hatch haven haystack hazel headline heart heather heavy hedgehog
height helium helmet helper herald herb heritage heron hexagon hickory highway hillside hippo history hobby
hockey holiday holly homework honest horizon hornet horse huddle humble husky hyacinth hybrid hydrant hyena
iceberg icicle icing ideal igloo iguana image impact import improve impulse income index indigo indoor
industry ingot inkwell inland inlet insect inside inspire instant insulate invite iris iron ivory jackal
jaguar jasmine javelin jelly jersey jester jewel jigsaw jogger journal joyful jubilee judge juice jukebox
jumbo jungle kangaroo kayak kettle keyboard kilogram kimono kingdom kiosk kiwi knapsack knee knock koala
label laburnum lacquer ladder ladle lagoon lamp landmark language lantern laptop larch large lasagna laser
lattice laundry laurel lava lavender league lecture ledger legend lemon lemur length lentil leopard lesson
liberty library license lichen lifeboat lilac lily limit linen lion liquid listen lively lizard llama
lobster local locust lodge logic lollipop longboat lounge luggage lullaby lumber lunar lunch lupin luxury
lyric macaroni magazine magenta magician magnet magpie mahogany mailbox major mallard mammal mandolin mango
mansion mantle manual maple marathon marble margin marina marker marsh marvel mascot mason master matador
material matrix mattress maximum meadow meaning medium meeting melody member memory merchant meringue
mermaid message meteor method midnight migrate milk mimic mineral miracle mirror mitten mixture mobile
modern module molecule moment monarch money monsoon monument mosaic mother motion mouse movie muffin
mulberry mural museum mushroom mustard myth nachos napkin narwhal nation nature nautical nearby nebula
nectar needle neon nephew neptune nest network newborn nickel nimble noise nomad north notable notebook
notice nougat novel nozzle nugget nurse nutmeg nylon oasis oatmeal object observe obvious ocean octagon
octopus odyssey offer office olive olympic onion online onyx opal opera opinion orange orbit orchid oregano
orient origin osprey ostrich otter outdoor outfit outside oven overcoat owner oxygen oyster pacific package
paddle padlock page pagoda palace pamphlet pancake panel panorama pansy pantry papaya paprika papyrus parade
parent parka parsley partner passport pastel patience patrol pattern pavement pavilion payment peach peanut
pebble pecan pelican pencil pendant penguin pepper perfect permit person petunia pharmacy pheasant phone
photo phrase physics piano piccolo pickle picnic picture pigeon pillow pinball pioneer pipeline pitcher
pizza planet plaster platinum plunge podium poem polaroid polite pollen pompom poncho popcorn poplar poppy
porridge portal possum poster potato powder practice prairie prawn premium present pretzel primrose prism
prize process produce program project promise proof proverb public pudding pumpkin pupil puppet purchase
purple puzzle python quaint quantum quarry question quince rabbit raccoon racer racket radish railway
rainbow raisin rally ramble random ranger rattle reader realm recipe record recycle redwood refer reflect
refuge regal region regular reindeer relax relish remark remedy renew repair repeat replica report reptile
rescue respect restful retina return reunion reveal review reward rhubarb ringlet ripple roadside robin
rodeo romance rooftop rookie rooster rosemary rotate round royal rubber rucksack rugby ruler runner runway
rustic safari safety saffron salmon salute sample sandal saturn sauce sausage savanna sawdust scallop
scanner scarf scenic scheme school science scissors scooter scout scramble screen script scroll sculptor
season seaweed secret section sediment select sensible sentence sequel serene series sesame session settler
shadow shallow shampoo shape shark shelf shepherd sherbet shield shimmer shingle shiver shoelace shoulder
shovel shower shrimp shrub shuttle sibling sidewalk signal silence silver similar sister sketch skillet
skipper skunk skylark slalom sleeve slice slogan small smart smoky smooth snack snail sneaker snorkel
snowball soap soccer sofa softball solution sonata sorbet south souvenir soybean spaniel spatula special
speech spider spinach spiral splash sponge spoon spring sprout spruce square stable stadium staff stage
stairway stamp stapler starfish statue stencil stereo steward stocking storage stream strong student sturdy
subject subway success suede suitcase summer sunset supper surfer surprise survey swan sweater swift swing
switch symphony syrup system tablet tackle tadpole tailor talcum talent tandem tapestry target tarnish
tavern taxi teacher teaspoon teddy temple tenant tender tennis tent terminal terrain textile thankful theme
theory thermal thicket thimble thistle thread thrifty thrush thunder tiger timber tinsel titanium toboggan
together tomato tomorrow toolbox topaz topic torch tornado tortoise toucan tourist tower tractor traffic
trail transit trapeze treaty treble trestle triangle tribe trident trilogy trinket trombone trophy trousers
trowel truffle trumpet truth tuba tugboat tulip tumbler tunnel turban turkey turmeric turnip turtle tuxedo
tweed twig twilight twist typhoon ukulele ultra umbrella uncle under unicorn uniform unique unit universe
upbeat update upland upright upstairs upward useful usher utensil utopia vacuum vector vehicle velvet vendor
verdict vertical veteran viaduct vibrant village vinegar vintage violin virtue vision vitamin vivid voice
volume vortex vowel voyage waffle wagon waiter walker wallet walnut walrus waltz wander warbler wardrobe
warm washer wasp wattage wave weasel weaver wedding weekend welcome welder western wharf wheat whimsy
whisper wicker widget width wigwam wildcat winch window wisdom wobble wolf wombat wooden worker world wrench
wrestler wrinkle wrist yacht yard yeast yoga yogurt young zebra zenith zeppelin zigzag zircon zodiac
"""
WORDS = tuple(_LISTED.split())
NUMBERS = {word: number for number, word in enumerate(WORDS)}
