/* Echoes: a note for every event that asks for one, an allow for every question, an answer to its command and its tool.
 * Reads hello_ack and all else without answering. The one argument, if there is one, is appended to the names it registers. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char buffer[1 << 20];

static void put(const char *text, size_t size) {
    while (size > 0) {
        ssize_t written = write(1, text, size);
        if (written <= 0) _exit(0);
        text += written;
        size -= (size_t)written;
    }
}

static void reply(const char *line, const char *type, const char *rest) {
    char id[64] = "", out[256];
    const char *at = strstr(line, "\"id\":\"");
    if (at) sscanf(at + 6, "%63[^\"]", id);
    put(out, (size_t)snprintf(out, sizeof out, "{\"type\":\"%s\",\"id\":\"%s\"%s}\n", type, id, rest));
}

static void answer(const char *line) {
    if (strstr(line, "\"type\":\"event_intercept\"")) {
        reply(line, "event_intercept_response", "");
    } else if (strstr(line, "\"type\":\"event\"")) {
        const char *echo = "{\"type\":\"notify\",\"level\":\"info\",\"message\":\"pong\"}\n";
        if (strstr(line, "\"ping\"")) put(echo, strlen(echo));
    } else if (strstr(line, "\"type\":\"command_invoked\"")) {
        reply(line, "command_response", ",\"action\":\"noop\"");
    } else if (strstr(line, "\"type\":\"tool_call\"")) {
        reply(line, "tool_result", ",\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]");
    } else if (strstr(line, "\"type\":\"shutdown\"")) {
        _exit(0);
    }
}

int main(int count, char **arguments) {
    const char *suffix = count > 1 ? arguments[1] : "";
    char hello[1024];
    int size = snprintf(hello, sizeof hello,
                        "{\"type\":\"hello\",\"name\":\"echo%s\"}\n"
                        "{\"type\":\"register_command\",\"name\":\"echo%s\",\"description\":\"echo\"}\n"
                        "{\"type\":\"register_tool\",\"name\":\"echo%s\",\"description\":\"echo\",\"schema\":{\"type\":\"object\"}}\n"
                        "{\"type\":\"subscribe\",\"events\":[\"turn_start\"],\"intercept\":[\"tool_call\"]}\n"
                        "{\"type\":\"ready\"}\n",
                        suffix, suffix, suffix);
    size_t length = 0;
    put(hello, (size_t)size);
    for (;;) {
        ssize_t got = read(0, buffer + length, sizeof buffer - 1 - length);
        if (got <= 0) return 0;
        length += (size_t)got;
        char *start = buffer, *end;
        while ((end = memchr(start, '\n', (size_t)(buffer + length - start)))) {
            *end = 0;
            answer(start);
            start = end + 1;
        }
        length = (size_t)(buffer + length - start);
        memmove(buffer, start, length);
    }
}
