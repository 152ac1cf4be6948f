/* Plays packetdrill scripts against a shared object, so that they are run where packetdrill is not.
 *
 *   player ./liblinerate_packetdrill.so SCRIPT.pkt...
 *
 * It knows the part of packetdrill's language that our scripts use: times (absolute, or + for relative), TCP packets over
 * IPv4 both ways with options and SACK blocks, and the calls in `call` below. Sequence numbers of the stack count from its
 * first one, as in packetdrill; a packet may come 4 ms beside its time. Anything else in a script is an error. */
#define _GNU_SOURCE

#include <arpa/inet.h>
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interface.h"

#define LOCAL "192.168.0.1"
#define REMOTE "192.0.2.1"
#define PORT 8080
#define REMOTE_PORT 50000
#define TOLERANCE_US 4000
#define MAX_PACKET 1500
#define MAX_FDS 64

struct play {
    const char *file;
    int line;
    struct packetdrill_interface pd;
    long long start_us, event_us; /* live time of the script's 0, script time of the last event */
    int fds[MAX_FDS];             /* live descriptors by those of the script */
    int local_port, remote_port;
    int have_isn, have_ts;
    uint32_t isn, ts_offset; /* what the stack's numbers differ by from the script's */
};

struct segment {
    unsigned flags;
    uint32_t seq, ack;
    size_t length;
    long window; /* -1: any */
    int any_options;
    size_t options_length;
    unsigned char options[40];
};

static int fail(struct play *play, const char *what, const char *text)
{
    fprintf(stderr, "%s:%d: %s: %s\n", play->file, play->line, what, text);
    return -1;
}

/* ---- Bytes of packets. ---- */

static void put16(unsigned char *at, unsigned value) { at[0] = (unsigned char)(value >> 8), at[1] = (unsigned char)value; }
static void put32(unsigned char *at, uint32_t value) { put16(at, value >> 16), put16(at + 2, value & 0xffff); }
static unsigned get16(const unsigned char *at) { return (unsigned)at[0] << 8 | at[1]; }
static uint32_t get32(const unsigned char *at) { return (uint32_t)get16(at) << 16 | get16(at + 2); }

static uint32_t add(uint32_t sum, const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
    return sum;
}

static unsigned fold(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
}

/* The checksum of a TCP segment with its pseudo-header; 0 over one that has the right one. */
static unsigned tcp_sum(const unsigned char *ip, size_t length)
{
    return fold(add(add(6 + (uint32_t)length, ip + 12, 8), ip + 20, length));
}

static size_t build(const struct play *play, const struct segment *segment, unsigned char *ip)
{
    size_t header = 20 + segment->options_length, length = 20 + header + segment->length;
    unsigned char *tcp = ip + 20;

    memset(ip, 0, length);
    ip[0] = 0x45;
    put16(ip + 2, (unsigned)length);
    ip[8] = 64;
    ip[9] = 6;
    inet_pton(AF_INET, REMOTE, ip + 12);
    inet_pton(AF_INET, LOCAL, ip + 16);
    put16(ip + 10, fold(add(0, ip, 20)));
    put16(tcp, (unsigned)play->remote_port);
    put16(tcp + 2, (unsigned)play->local_port);
    put32(tcp + 4, segment->seq);
    put32(tcp + 8, segment->flags & 0x10 ? segment->ack + play->isn : 0);
    put16(tcp + 12, (unsigned)(header / 4) << 12 | segment->flags);
    put16(tcp + 14, (unsigned)(segment->window < 0 ? 65535 : segment->window));
    memcpy(tcp + 20, segment->options, segment->options_length);
    put16(tcp + 16, tcp_sum(ip, length - 20));
    return length;
}

/* ---- The language of packets: `S. 0:0(0) ack 1 win 100 <mss 1000,nop>`. ---- */

/* Writes the options in `text` as they are sent. `inbound` tells whose numbers they carry. */
static int parse_options(struct play *play, char *text, int inbound, const unsigned char *live, struct segment *out)
{
    unsigned char *at = out->options, *end = out->options + sizeof out->options;
    char *rest = NULL;

    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        unsigned a, b;
        while (*word == ' ')
            word++;
        if (end - at < 10 && strncmp(word, "nop", 3) != 0)
            return fail(play, "options too long", word);
        if (strcmp(word, "nop") == 0) {
            *at++ = 1;
        } else if (strcmp(word, "sackOK") == 0) {
            *at++ = 4, *at++ = 2;
        } else if (sscanf(word, "mss %u", &a) == 1) {
            *at++ = 2, *at++ = 4, put16(at, a), at += 2;
        } else if (sscanf(word, "wscale %u", &a) == 1) {
            *at++ = 3, *at++ = 3, *at++ = (unsigned char)a;
        } else if (sscanf(word, "TS val %u ecr %u", &a, &b) == 2) {
            /* The stack's clock starts anywhere: its first value stands for the script's. */
            if (!inbound && live && !play->have_ts) {
                const unsigned char *ts = memmem(live, 40, "\x08\x0a", 2);
                play->have_ts = ts != NULL;
                play->ts_offset = ts ? get32(ts + 2) - a : 0;
            }
            *at++ = 8, *at++ = 10;
            put32(at, inbound ? a : a + play->ts_offset);
            put32(at + 4, inbound && b ? b + play->ts_offset : b);
            at += 8;
        } else if (strncmp(word, "sack ", 5) == 0) {
            unsigned char *start = at;
            int used;
            uint32_t base = inbound ? play->isn : 0;
            *at++ = 5, at++;
            for (word += 5; sscanf(word, " %u:%u%n", &a, &b, &used) == 2 && end - at >= 8; word += used)
                put32(at, a + base), put32(at + 4, b + base), at += 8;
            start[1] = (unsigned char)(at - start);
        } else {
            return fail(play, "unknown option", word);
        }
    }
    while ((at - out->options) % 4)
        *at++ = 0;
    out->options_length = (size_t)(at - out->options);
    return 0;
}

static int parse_segment(struct play *play, char *text, int inbound, const unsigned char *live, struct segment *out)
{
    static const char letters[] = "FSRP.UEW";
    unsigned from, to, length, value;
    int used = 0;
    char flags[16], *options = strchr(text, '<');

    memset(out, 0, sizeof *out);
    out->window = -1;
    if (sscanf(text, " %15s %u:%u(%u)%n", flags, &from, &to, &length, &used) != 4 || to - from != length)
        return fail(play, "not a packet", text);
    for (char *flag = flags; *flag; flag++) {
        const char *found = strchr(letters, *flag);
        if (!found)
            return fail(play, "unknown flag", flag);
        out->flags |= 1u << (found - letters);
    }
    out->seq = from;
    out->length = length;
    if (options)
        *options++ = '\0';
    text += used;
    if (sscanf(text, " ack %u%n", &value, &used) == 1)
        out->ack = value, text += used;
    if (sscanf(text, " win %u%n", &value, &used) == 1)
        out->window = value, text += used;
    if (text[strspn(text, " ")] != '\0')
        return fail(play, "not understood", text);
    if (!options)
        return 0;
    if (!strchr(options, '>'))
        return fail(play, "options do not end", options);
    *strchr(options, '>') = '\0';
    out->any_options = strcmp(options, "...") == 0;
    return out->any_options ? 0 : parse_options(play, options, inbound, live, out);
}

/* ---- Events. ---- */

static long long live_us(struct play *play)
{
    struct timeval now;
    play->pd.gettimeofday(play->pd.userdata, &now, NULL);
    return now.tv_sec * 1000000ll + now.tv_usec;
}

static void wait_until(struct play *play, long long script_us)
{
    long long left = play->start_us + script_us - live_us(play);
    if (left > 0)
        play->pd.usleep(play->pd.userdata, (useconds_t)left);
}

static int inject(struct play *play, char *text)
{
    unsigned char packet[MAX_PACKET];
    struct segment segment;

    if (parse_segment(play, text, 1, NULL, &segment) < 0)
        return -1;
    if (40 + segment.options_length + segment.length > sizeof packet)
        return fail(play, "packet too long", text);
    if (segment.flags == 0x02 && play->local_port == 0)
        play->local_port = PORT, play->remote_port = REMOTE_PORT;
    if (play->pd.netdev_send(play->pd.userdata, packet, build(play, &segment, packet)) < 0)
        return fail(play, "netdev_send", strerror(errno));
    return 0;
}

static int expect(struct play *play, char *text)
{
    unsigned char ip[MAX_PACKET], *tcp = ip + 20;
    size_t size = sizeof ip, header;
    long long at_us = 0, off;
    struct segment want;
    char seen[160];

    if (play->pd.netdev_receive(play->pd.userdata, ip, &size, &at_us) < 0 || size < 40)
        return fail(play, "no packet came", text);
    header = (size_t)(tcp[12] >> 4) * 4;
    if (ip[0] != 0x45 || ip[9] != 6 || get16(ip + 2) != size || size < 20 + header)
        return fail(play, "not TCP over IPv4", text);
    if (fold(add(0, ip, 20)) != 0 || tcp_sum(ip, size - 20) != 0)
        return fail(play, "wrong checksum", text);
    if ((tcp[13] & 0x02) && !play->have_isn) {
        play->have_isn = 1;
        play->isn = get32(tcp + 4);
        play->local_port = (int)get16(tcp);
        play->remote_port = (int)get16(tcp + 2);
    }
    if (parse_segment(play, text, 0, tcp + 20, &want) < 0)
        return -1;
    snprintf(seen, sizeof seen, "flags %#x seq %u length %zu ack %u win %u, %zu bytes of options", tcp[13],
             get32(tcp + 4) - play->isn, size - 20 - header, get32(tcp + 8), get16(tcp + 14), header - 20);
    if (tcp[13] != want.flags || get32(tcp + 4) - play->isn != want.seq || size - 20 - header != want.length)
        return fail(play, "another packet came", seen);
    if ((want.flags & 0x10) && get32(tcp + 8) != want.ack)
        return fail(play, "another acknowledgement came", seen);
    if (want.window >= 0 && get16(tcp + 14) != (unsigned)want.window)
        return fail(play, "another window came", seen);
    if (!want.any_options
        && (header - 20 != want.options_length || memcmp(tcp + 20, want.options, header - 20) != 0)) {
        for (size_t i = 20; i < header; i++)
            fprintf(stderr, "%02x ", tcp[i]);
        return fail(play, "other options came", seen);
    }
    off = at_us - play->start_us - play->event_us;
    if (off > TOLERANCE_US || off < -TOLERANCE_US) {
        snprintf(seen, sizeof seen, "%lld us beside %lld us", off, play->event_us);
        return fail(play, "packet at another time", seen);
    }
    return 0;
}

static const struct { const char *name; int value; } names[] = {
    {"AF_INET", AF_INET}, {"SOCK_STREAM", SOCK_STREAM}, {"IPPROTO_TCP", IPPROTO_TCP}, {"SOL_SOCKET", SOL_SOCKET},
    {"SOL_TCP", IPPROTO_TCP}, {"SO_REUSEADDR", SO_REUSEADDR}, {"SO_ERROR", SO_ERROR}, {"SO_SNDBUF", SO_SNDBUF},
    {"SO_RCVBUF", SO_RCVBUF}, {"TCP_NODELAY", TCP_NODELAY}, {"TCP_MAXSEG", TCP_MAXSEG}, {"TCP_USER_TIMEOUT", TCP_USER_TIMEOUT},
    {"F_GETFL", F_GETFL}, {"F_SETFL", F_SETFL}, {"O_RDWR", O_RDWR}, {"O_NONBLOCK", O_NONBLOCK}, {"SHUT_RD", SHUT_RD},
    {"SHUT_WR", SHUT_WR}, {"SHUT_RDWR", SHUT_RDWR}, {"EAGAIN", EAGAIN}, {"EINPROGRESS", EINPROGRESS},
    {"ECONNRESET", ECONNRESET}, {"ECONNREFUSED", ECONNREFUSED}, {"EPIPE", EPIPE}, {"ETIMEDOUT", ETIMEDOUT},
};

/* The value of `17`, `[17]`, `NAME` or `NAME|NAME`. */
static int value_of(const char *word, int *value)
{
    *value = 0;
    while (*word) {
        char one[32];
        int used, found = 0;
        word += strspn(word, " [|]");
        if (*word == '\0')
            break;
        if (sscanf(word, "%31[A-Za-z0-9_.-]%n", one, &used) != 1)
            return -1;
        word += used;
        if (isdigit((unsigned char)one[0]) || one[0] == '-')
            *value |= atoi(one), found = 1;
        for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
            if (strcmp(one, names[i].name) == 0)
                *value |= names[i].value, found = 1;
        if (!found && strcmp(one, "...") != 0)
            return -1;
    }
    return 0;
}

static ssize_t dispatch(struct play *play, const char *name, int fd, const int *arg)
{
    static char data[1 << 20];
    struct packetdrill_interface *pd = &play->pd;
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    int value = arg[3];

    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons(PORT);
    inet_pton(AF_INET, strcmp(name, "connect") == 0 ? REMOTE : LOCAL, &address.sin_addr);
    if (strcmp(name, "socket") == 0)
        return pd->socket(pd->userdata, AF_INET, arg[1], arg[2]);
    if (strcmp(name, "bind") == 0)
        return pd->bind(pd->userdata, fd, (struct sockaddr *)&address, length);
    if (strcmp(name, "listen") == 0)
        return pd->listen(pd->userdata, fd, arg[1]);
    if (strcmp(name, "accept") == 0)
        return pd->accept(pd->userdata, fd, (struct sockaddr *)&address, &length);
    if (strcmp(name, "connect") == 0)
        return pd->connect(pd->userdata, fd, (struct sockaddr *)&address, length);
    if (strcmp(name, "read") == 0 && (size_t)arg[2] <= sizeof data)
        return pd->read(pd->userdata, fd, data, (size_t)arg[2]);
    if (strcmp(name, "write") == 0 && (size_t)arg[2] <= sizeof data)
        return pd->write(pd->userdata, fd, data, (size_t)arg[2]);
    if (strcmp(name, "close") == 0)
        return pd->close(pd->userdata, fd);
    if (strcmp(name, "shutdown") == 0)
        return pd->shutdown(pd->userdata, fd, arg[1]);
    if (strcmp(name, "fcntl") == 0)
        return pd->fcntl(pd->userdata, fd, arg[1], arg[2]);
    length = sizeof value;
    if (strcmp(name, "setsockopt") == 0)
        return pd->setsockopt(pd->userdata, fd, arg[1], arg[2], &value, length);
    if (strcmp(name, "getsockopt") == 0) {
        ssize_t result = pd->getsockopt(pd->userdata, fd, arg[1], arg[2], &value, &length);
        return result == 0 && value != arg[3] ? -2 : result;
    }
    errno = ENOSYS;
    return -2;
}

/* `name(a, b, c) = result`, or `= -1 ERROR (text)`. */
static int call(struct play *play, char *text)
{
    char name[16], *open = strchr(text, '('), *result = strstr(text, ") = "), *rest = NULL;
    char error[32] = "0";
    int arg[6] = {0}, count = 0, want, want_errno = 0, fd;
    ssize_t got;

    if (!open || !result || sscanf(text, " %15[a-z_](", name) != 1)
        return fail(play, "not a call", text);
    *result = '\0';
    if (sscanf(result + 4, "%d %31[A-Z0-9]", &want, error) < 1 || value_of(error, &want_errno) < 0)
        return fail(play, "not a result", result + 4);
    for (char *word = strtok_r(open + 1, ",", &rest); word && count < 6; word = strtok_r(NULL, ",", &rest))
        if (value_of(word, &arg[count++]) < 0)
            return fail(play, "not a value", word);
    fd = arg[0] >= 0 && arg[0] < MAX_FDS ? play->fds[arg[0]] : -1;
    errno = 0;
    got = dispatch(play, name, fd, arg);
    if ((strcmp(name, "socket") == 0 || strcmp(name, "accept") == 0) && got >= 0 && want >= 0 && want < MAX_FDS) {
        play->fds[want] = (int)got;
        return 0;
    }
    if (got != want || (want == -1 && errno != want_errno)) {
        char seen[80];
        snprintf(seen, sizeof seen, "%s gave %zd (%s)", name, got, strerror(errno));
        return fail(play, "another result", seen);
    }
    return 0;
}

static int play_line(struct play *play, char *line)
{
    double seconds;
    char *end;
    int relative;

    line += strspn(line, " \t");
    line[strcspn(line, "\r\n")] = '\0';
    if (*line == '\0' || strncmp(line, "//", 2) == 0)
        return 0;
    relative = *line == '+';
    seconds = strtod(line + relative, &end);
    if (end == line + relative)
        return fail(play, "no time", line);
    play->event_us = (long long)(seconds * 1e6 + 0.5) + (relative ? play->event_us : 0);
    end += strspn(end, " \t");
    if (*end == '>')
        return expect(play, end + 1);
    wait_until(play, play->event_us);
    return *end == '<' ? inject(play, end + 1) : call(play, end);
}

static int play_file(const char *file, void (*init)(const char *, struct packetdrill_interface *))
{
    struct play play;
    char line[512];
    FILE *in = fopen(file, "r");
    int result = 0;

    if (!in) {
        perror(file);
        return -1;
    }
    memset(&play, 0, sizeof play);
    play.file = file;
    init(NULL, &play.pd);
    play.start_us = live_us(&play);
    while (result == 0 && fgets(line, sizeof line, in)) {
        play.line++;
        result = play_line(&play, line);
    }
    fclose(in);
    play.pd.free(play.pd.userdata);
    printf("%s %s\n", result == 0 ? "passed" : "FAILED", file);
    return result;
}

int main(int argc, char **argv)
{
    void *object;
    void (*init)(const char *, struct packetdrill_interface *);
    int failed = 0;

    if (argc < 3) {
        fprintf(stderr, "usage: player OBJECT.so SCRIPT.pkt...\n");
        return 2;
    }
    object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&init = dlsym(object, "packetdrill_interface_init");
    if (!init) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    for (int i = 2; i < argc; i++)
        failed += play_file(argv[i], init) != 0;
    dlclose(object);
    return failed != 0;
}
